// Promise: TCP connections of the probe: opened with a time limit, without Nagle's delay, ended with their
// object; a whole message or an exception that names the peer, and no wait for a silent peer without a limit.
// Request and answer are a header of 24 bytes and payload up to the message's size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace netprobe {

constexpr std::uint32_t kMagic = 0x6e70726f;
constexpr std::uint32_t kSizeMax = 64u << 20;  // a larger message in a header is damage, or a stranger

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t size = 0;    // bytes of this message, header included
  std::uint32_t answer = 0;  // request: bytes of the answer that is wanted; answer: segments that its sender
                             // has sent again so far
  std::uint32_t reserved = 0;
  std::uint64_t event = 0;  // the answer repeats the request's
};
static_assert(sizeof(Header) == 24);

struct Endpoint {
  std::string host;
  std::string port;
  std::string text() const { return host + ":" + port; }
};
// Parses "HOST:PORT"; Refusal names the option.
Endpoint parse_endpoint(const std::string& option, const std::string& text);

// How long a connection waits for its peer.
struct Patience {
  const std::atomic<int>* stop = nullptr;  // until this is not zero; null: nobody interrupts
  std::int64_t stall_ns = INT64_MAX;       // until the peer has been silent for so long
};

// An interruption ended the wait for a peer.
using daqwriter::Interrupted;

class Connection {
 public:
  Connection(int descriptor, std::string peer) : descriptor_(descriptor), peer_(std::move(peer)) {}
  Connection(Connection&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        peer_(std::move(other.peer_)),
        patience_(other.patience_) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  // Tries every address of the peer, and again until `timeout_s` has passed, since a peer may be starting;
  // Failure names it then. Interrupted when `patience.stop` says so before.
  static Connection open(const Endpoint& peer, double timeout_s, const Patience& patience);

  // These throw Failure when the connection breaks, or the peer takes or gives nothing for
  // `patience.stall_ns`, and Interrupted.
  void send(const Header& header, std::span<const std::byte> payload);
  // All of `message`; Failure when the peer closes before its end.
  void receive_whole(std::span<std::byte> message);
  // At least one byte; 0: the peer has closed.
  std::size_t receive(std::span<std::byte> into);
  // Receives what has arrived, without waiting; 0: nothing yet.
  std::size_t receive_some(std::span<std::byte> into);
  std::uint32_t segments_sent_again() const;
  int descriptor() const { return descriptor_; }
  const std::string& peer() const { return peer_; }

 private:
  class Wait;

  int descriptor_;
  std::string peer_;
  Patience patience_;
};

// A listening socket on every address of `host`; Refusal names the address or port that is taken or not ours.
int listen_on(const Endpoint& at);
// The next caller, or -1 after `timeout_ms` without one.
int next_caller(int listener, int timeout_ms);

}  // namespace netprobe
