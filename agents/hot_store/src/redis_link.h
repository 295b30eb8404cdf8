// Promise: a command gets to the node that owns its slot, and its reply back,
// also while a node is lost and another one takes over, for as long as the
// caller's patience lasts. One server is a cluster of one node.
//
// A command that may have been done although its reply was lost is sent again,
// and the reply says so (`again`): only the caller knows what that means.
#pragma once

#include <hiredis/hiredis.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"

namespace hotstore {

constexpr unsigned kSlots = 16384;

constexpr std::array<std::uint16_t, 256> make_crc16_table() {
  constexpr std::uint16_t kPolynomial = 0x1021;
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 0x8000 ? crc << 1 ^ kPolynomial : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

inline std::uint16_t crc16(View bytes) {
  static constexpr auto kTable = make_crc16_table();
  unsigned crc = 0;
  for (const char byte : bytes)
    crc = (crc << 8 ^ kTable[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff]) & 0xffff;
  return static_cast<std::uint16_t>(crc);
}

// The hash slot that Redis Cluster gives a key: CRC16 (XMODEM) of what stands between the first braces, or of
// the whole key, modulo 16384.
inline unsigned slot_of(View key) {
  const std::size_t open = key.find('{');
  if (open != View::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != View::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kSlots;
}

constexpr std::string_view kUnixPrefix = "unix:";

struct Endpoint {
  std::string host;  // or the path of a Unix socket, and no port
  int port = 0;

  // "HOST:PORT" or "unix:PATH", where a socket is. Throws Refusal.
  static Endpoint parse(const std::string& text);
  bool is_unix() const { return port == 0; }
  std::string text() const { return is_unix() ? "unix:" + host : host + ":" + std::to_string(port); }
  auto operator<=>(const Endpoint&) const = default;
};

using RedisContext = std::unique_ptr<redisContext, decltype(&redisFree)>;

using RawReply = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;
using Words = std::vector<View>;

// Asks for a command; its reply comes in its turn.
void ask(redisContext& context, std::span<const View> words);
// The next reply; null: the connection is lost, as its `errstr` says.
RawReply next_reply(redisContext& context);

// A new connection with time limits; none: `error` says why.
RedisContext connect_to(const Endpoint& endpoint, std::string& error, double wait_s = 0);

struct RedisOptions {
  std::vector<Endpoint> endpoints;  // of a cluster: some of its nodes
  bool cluster = false;
  int replicas = 0;        // nodes beside the owner that must have a write before it counts
  double wait_s = 1.0;     // time limit for these
  double patience_s = 30;  // for a node that takes over
};

// A reply: text, a number, nothing, or a list of texts (in which nothing is the
// empty text).
struct Reply {
  bool again = false;
  bool nothing = false;
  bool full = false;  // the server has no memory left for it
  std::int64_t number = 0;
  Bytes text;
  std::vector<Bytes> list;
  int replicas = 0;  // that have confirmed, where the caller asked for it
};

// A contiguous piece of the slots and who owns it now.
struct Shard {
  unsigned first = 0;
  unsigned last = kSlots - 1;
  Endpoint owner;
};

class RedisLink {
 public:
  // Throws Refusal when no endpoint answers.
  explicit RedisLink(RedisOptions options);
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // `confirm`: waits for options().replicas of them too. Throws Failure when
  // patience runs out, or on a permanent error reply.
  Reply command(unsigned slot, const Words& words, bool confirm);
  // A script by its digest; it is sent along when the server does not have it.
  Reply script(unsigned slot, const std::string& source, const std::string& digest, const Words& words,
               bool confirm);
  std::string load(const std::string& source);  // returns the digest

  std::vector<Shard> shards();  // in the order of their slots; a node's loss
                                // changes owners, never the pieces
  const RedisOptions& options() const { return options_; }
  std::string description() const;
  std::string durability();  // what the server's own settings let a write survive, in words

 private:
  struct Outcome {
    enum class Kind { reply, lost, moved, wait } kind = Kind::reply;
    Reply reply;
    std::string error;
  };

  Endpoint owner_of(unsigned slot);
  void learn_shards();
  bool learn_from(const Endpoint& endpoint);
  RedisContext take(const Endpoint& endpoint, std::string& error);
  void give(const Endpoint& endpoint, RedisContext context);
  Outcome attempt(redisContext* context, const Words& words, bool confirm);

  RedisOptions options_;
  std::mutex gate_;
  std::vector<Shard> shards_;
  std::map<Endpoint, std::vector<RedisContext>> idle_;
};

}  // namespace hotstore
