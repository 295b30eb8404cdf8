#include "redis_link.h"

#include <sys/un.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"

namespace hotstore {
namespace {

using daqwriter::Failure;
using daqwriter::Refusal;

constexpr timeval kConnectTime{1, 0};
constexpr double kReplyTime_s = 5;
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr int kHighestPort = 65535;

Bytes text_of(const redisReply* reply) {
  if (reply->type == REDIS_REPLY_INTEGER) return std::to_string(reply->integer);
  return reply->str ? Bytes(reply->str, reply->len) : Bytes();
}

Reply as_reply(const redisReply* raw) {
  Reply reply;
  reply.nothing = raw->type == REDIS_REPLY_NIL;
  reply.number = raw->type == REDIS_REPLY_INTEGER ? raw->integer : 0;
  if (raw->type == REDIS_REPLY_ARRAY) {
    for (std::size_t i = 0; i < raw->elements; ++i) reply.list.push_back(text_of(raw->element[i]));
  } else {
    reply.text = text_of(raw);
  }
  return reply;
}

std::optional<unsigned> integer_in(const redisReply& reply, unsigned least, unsigned most) {
  const bool good =
      reply.type == REDIS_REPLY_INTEGER && reply.integer >= least && reply.integer <= static_cast<int>(most);
  return good ? std::optional(static_cast<unsigned>(reply.integer)) : std::nullopt;
}

// [first slot, last slot, [host, port, ...], replicas ...]; "" stands for the host that was asked.
std::optional<Shard> shard_in(const redisReply& piece, const std::string& asked_host) {
  if (piece.type != REDIS_REPLY_ARRAY || piece.elements < 3) return std::nullopt;
  const redisReply& node = *piece.element[2];
  if (node.type != REDIS_REPLY_ARRAY || node.elements < 2) return std::nullopt;
  const auto first = integer_in(*piece.element[0], 0, kSlots - 1);
  const auto last = integer_in(*piece.element[1], 0, kSlots - 1);
  const auto port = integer_in(*node.element[1], 1, kHighestPort);
  const int host = node.element[0]->type;
  if (!first || !last || *first > *last || !port || (host != REDIS_REPLY_STRING && host != REDIS_REPLY_NIL))
    return std::nullopt;
  Endpoint owner{text_of(node.element[0]), static_cast<int>(*port)};
  if (owner.host.empty()) owner.host = asked_host;
  return Shard{*first, *last, owner};
}

bool starts(const std::string& text, std::initializer_list<const char*> heads) {
  return std::any_of(heads.begin(), heads.end(), [&](const char* head) { return text.starts_with(head); });
}

}  // namespace

// Refuses a path that the kernel cannot take, or where nothing listens, before anything is opened.
static Endpoint unix_endpoint(const std::string& text) {
  constexpr std::size_t kMostPath = sizeof(sockaddr_un::sun_path) - 1;
  const std::string path = text.substr(kUnixPrefix.size());
  if (path.empty() || path.size() > kMostPath)
    throw Refusal("--endpoint '" + text + "': the path of a Unix socket has 1 to " +
                  std::to_string(kMostPath) + " bytes, this one " + std::to_string(path.size()) +
                  ": give a shorter one");
  std::error_code error;
  if (!std::filesystem::is_socket(path, error))
    throw Refusal("--endpoint '" + text +
                  "': there is no Unix socket: start redis-server with --unixsocket " + path);
  return {path, 0};
}

Endpoint Endpoint::parse(const std::string& text) {
  if (text.starts_with(kUnixPrefix)) return unix_endpoint(text);
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos && colon > 0) {
    const int port = daqwriter::parse_number<int>(text.substr(colon + 1)).value_or(0);
    if (port > 0 && port <= kHighestPort) return {text.substr(0, colon), port};
  }
  throw Refusal("--endpoint '" + text + "': write HOST:PORT, as in 127.0.0.1:6379, or unix:PATH");
}

// hiredis makes room for as many elements as a reply announces, and goes through them all to free it.
constexpr auto kMostElements = 1 << 20;

const redisReplyObjectFunctions*& made_by_hiredis() {
  static const redisReplyObjectFunctions* functions = nullptr;
  return functions;
}

// `Count`: int or size_t, by hiredis' version.
template <typename Count>
void* bounded_array(const redisReadTask* task, Count elements) {
  return elements > static_cast<Count>(kMostElements) ? nullptr
                                                      : made_by_hiredis()->createArray(task, elements);
}

void bound_replies(redisContext& context) {
  static redisReplyObjectFunctions bounded = [&context] {
    made_by_hiredis() = context.reader->fn;
    redisReplyObjectFunctions all = *context.reader->fn;
    all.createArray = &bounded_array;
    return all;
  }();
  context.reader->fn = &bounded;
}

void ask(redisContext& context, std::span<const View> words) {
  thread_local std::vector<const char*> texts;  // kept: pipelines are measured
  thread_local std::vector<std::size_t> sizes;
  texts.clear();
  sizes.clear();
  for (const View word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  redisAppendCommandArgv(&context, static_cast<int>(words.size()), texts.data(), sizes.data());
}

RawReply next_reply(redisContext& context) {
  void* raw = nullptr;
  redisGetReply(&context, &raw);
  return {static_cast<redisReply*>(raw), freeReplyObject};
}

RedisContext connect_to(const Endpoint& endpoint, std::string& error, double wait_s) {
  RedisContext context(endpoint.is_unix()
                           ? redisConnectUnixWithTimeout(endpoint.host.c_str(), kConnectTime)
                           : redisConnectWithTimeout(endpoint.host.c_str(), endpoint.port, kConnectTime),
                       redisFree);
  if (context && !context->err) {
    bound_replies(*context);
    const auto limit_us = static_cast<std::int64_t>((kReplyTime_s + wait_s) * 1e6);
    redisSetTimeout(context.get(), {limit_us / 1'000'000, limit_us % 1'000'000});
    return context;
  }
  error = endpoint.text() + ": " + (context ? context->errstr : "out of memory");
  return {nullptr, redisFree};
}

RedisLink::RedisLink(RedisOptions options) : options_(std::move(options)) {
  if (options_.endpoints.empty()) throw Refusal("--endpoint: Redis needs one, HOST:PORT");
  learn_shards();
  if (shards_.empty())
    throw Refusal(description() + ": no " + (options_.cluster ? "complete cluster" : "server") +
                  " answers there");
}

std::string RedisLink::description() const {
  return std::string(options_.cluster ? "Redis Cluster at " : "Redis at ") +
         options_.endpoints.front().text();
}

std::string RedisLink::durability() {
  const auto setting = [this](const char* name) {
    const Reply reply = command(0, {"CONFIG", "GET", name}, false);
    return reply.list.size() == 2 ? reply.list.back() : Bytes();
  };
  try {
    const bool snapshots = !setting("save").empty();
    if (setting("appendonly") != "yes")
      return snapshots ? "snapshots only: an acknowledged write does not survive the death of the server "
                         "until the next one"
                       : "volatile, no snapshot and no append-only file: an acknowledged write does not "
                         "survive the "
                         "death of the server";
    return "append-only file, fsync " + setting("appendfsync") +
           ": an acknowledged write is in the kernel's hands (survives kill -9 of the server, but for one "
           "that waits "
           "for an fsync in progress), on the drive as often as that says";
  } catch (const Failure& failure) {
    return std::string("not known, the server does not tell its settings: ") + failure.what();
  }
}

std::vector<Shard> RedisLink::shards() {
  std::lock_guard hold(gate_);
  return shards_;
}

Endpoint RedisLink::owner_of(unsigned slot) {
  std::lock_guard hold(gate_);
  for (const Shard& shard : shards_) {
    if (shard.first <= slot && slot <= shard.last) return shard.owner;
  }
  throw Failure(description() + ": nobody owns slot " + std::to_string(slot));
}

RedisContext RedisLink::take(const Endpoint& endpoint, std::string& error) {
  {
    std::lock_guard hold(gate_);
    auto& idle = idle_[endpoint];
    if (!idle.empty()) {
      RedisContext context = std::move(idle.back());
      idle.pop_back();
      return context;
    }
  }
  // A server that waits for its replicas is silent for as long as we asked.
  return connect_to(endpoint, error, options_.replicas > 0 ? options_.wait_s : 0);
}

void RedisLink::give(const Endpoint& endpoint, RedisContext context) {
  std::lock_guard hold(gate_);
  idle_[endpoint].push_back(std::move(context));
}

// Any node that is up knows which node owns which slots.
void RedisLink::learn_shards() {
  std::set<Endpoint> candidates(options_.endpoints.begin(), options_.endpoints.end());
  {
    std::lock_guard hold(gate_);
    for (const Shard& shard : shards_) candidates.insert(shard.owner);
  }
  for (const Endpoint& endpoint : candidates) {
    if (learn_from(endpoint)) return;
  }
}

// By the answer to CLUSTER SLOTS; empty unless that gives every slot to one node, whatever it says else.
static std::vector<Shard> shards_in(const redisReply& answer, const std::string& asked_host) {
  std::vector<Shard> found;
  if (answer.type != REDIS_REPLY_ARRAY) return {};
  for (std::size_t i = 0; i < answer.elements; ++i) {
    const std::optional<Shard> shard = shard_in(*answer.element[i], asked_host);
    if (!shard) return {};
    found.push_back(*shard);
  }
  std::sort(found.begin(), found.end(), [](const Shard& a, const Shard& b) { return a.first < b.first; });
  unsigned next = 0;
  for (const Shard& shard : found) {
    if (shard.first != next) return {};
    next = shard.last + 1;
  }
  return next == kSlots ? found : std::vector<Shard>();
}

bool RedisLink::learn_from(const Endpoint& endpoint) {
  std::string error;
  RedisContext context = take(endpoint, error);
  if (!context) return false;
  std::vector<Shard> found;
  const char* question = options_.cluster ? "CLUSTER SLOTS" : "PING";
  const RawReply raw(static_cast<redisReply*>(redisCommand(context.get(), question)), freeReplyObject);
  if (!raw || raw->type == REDIS_REPLY_ERROR) return false;
  if (!options_.cluster) {
    found.push_back({0, kSlots - 1, endpoint});
  } else {
    found = shards_in(*raw, endpoint.host);
    if (found.empty()) return false;
  }
  give(endpoint, std::move(context));
  std::lock_guard hold(gate_);
  shards_ = std::move(found);
  return true;
}

RedisLink::Outcome RedisLink::attempt(redisContext* context, const Words& words, bool confirm) {
  ask(*context, words);  // both in one round trip
  if (confirm)
    redisAppendCommand(context, "WAIT %d %d", options_.replicas,
                       static_cast<int>(std::lround(options_.wait_s * 1e3)));
  std::vector<RawReply> replies;
  for (int i = 0; i < (confirm ? 2 : 1); ++i) {
    replies.push_back(next_reply(*context));
    if (!replies.back()) return {Outcome::Kind::lost, {}, context->errstr};
  }
  const redisReply* first = replies.front().get();
  if (first->type == REDIS_REPLY_ERROR) {
    const std::string error = text_of(first);
    if (starts(error, {"MOVED", "ASK "})) return {Outcome::Kind::moved, {}, error};
    if (starts(error, {"CLUSTERDOWN", "TRYAGAIN", "LOADING", "READONLY", "MASTERDOWN", "NOREPLICAS"}))
      return {Outcome::Kind::wait, {}, error};
    Outcome outcome{Outcome::Kind::reply, {}, error};
    outcome.reply.full = error.starts_with("OOM ");
    if (outcome.reply.full) outcome.error.clear();
    return outcome;
  }
  Outcome outcome{Outcome::Kind::reply, as_reply(first), {}};
  if (confirm) {
    const redisReply* waited = replies.back().get();
    // A master that has become a replica while it waited answers with an error
    // and confirms nothing.
    outcome.reply.replicas = waited->type == REDIS_REPLY_INTEGER ? static_cast<int>(waited->integer) : 0;
  }
  return outcome;
}

Reply RedisLink::command(unsigned slot, const Words& words, bool confirm) {
  const std::int64_t deadline = daqwriter::monotonic_ns() + daqwriter::to_ns(options_.patience_s);
  const bool wait = confirm && options_.replicas > 0;
  bool again = false;
  std::string error;
  for (;;) {
    const Endpoint endpoint = owner_of(slot);
    RedisContext context = take(endpoint, error);
    if (context) {
      Outcome outcome = attempt(context.get(), words, wait);
      error = endpoint.text() + ": " + outcome.error;
      if (outcome.kind != Outcome::Kind::lost) give(endpoint, std::move(context));
      if (outcome.kind == Outcome::Kind::reply) {
        if (!outcome.error.empty()) throw Failure("Redis at " + error);
        outcome.reply.again = again;
        return std::move(outcome.reply);
      }
      again = again || outcome.kind == Outcome::Kind::lost;
    }
    if (daqwriter::monotonic_ns() > deadline) throw Failure("Redis is not to be had any more: " + error);
    std::this_thread::sleep_for(kPause);
    learn_shards();
  }
}

std::string RedisLink::load(const std::string& source) {
  std::string digest;
  for (const Shard& shard : shards()) digest = command(shard.first, {"SCRIPT", "LOAD", source}, false).text;
  return digest;
}

Reply RedisLink::script(unsigned slot, const std::string& source, const std::string& digest,
                        const Words& words, bool confirm) {
  Words all{"EVALSHA", digest};
  all.insert(all.end(), words.begin(), words.end());
  try {
    return command(slot, all, confirm);
  } catch (const Failure& failure) {
    if (std::strstr(failure.what(), "NOSCRIPT") == nullptr) throw;
  }
  // A node that has taken over may not have it yet.
  all[0] = "EVAL";
  all[1] = source;
  return command(slot, all, confirm);
}

}  // namespace hotstore
