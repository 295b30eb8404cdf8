#include "wire.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/clock.h"
#include "base/status.h"

namespace netprobe {
namespace {

using daqwriter::Failure;
using daqwriter::Refusal;

constexpr std::int64_t kPauseNs = 50'000'000;  // between two tries to connect

[[noreturn]] void fail(const std::string& peer, const char* what) {
  throw Failure(peer + ": " + what + ": " + daqwriter::errno_text(errno));
}

struct Freed {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};
using Addresses = std::unique_ptr<addrinfo, Freed>;

Addresses resolve(const Endpoint& at, int flags) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(at.host.c_str(), at.port.c_str(), &wanted, &found);
  if (error != 0)
    throw Refusal(at.text() + ": " + gai_strerror(error) +
                  ". Give an address of the data network and a port");
  return Addresses(found);
}

int try_to_connect(const addrinfo& address) {
  const int descriptor = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
  if (descriptor < 0) return -1;
  if (connect(descriptor, address.ai_addr, address.ai_addrlen) == 0) return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

void without_delay(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Endpoint parse_endpoint(const std::string& option, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const bool whole = colon != std::string::npos && colon > 0 && colon + 1 < text.size();
  if (!whole || text.find_first_not_of("0123456789", colon + 1) != std::string::npos)
    throw Refusal(option + " " + text + ": give HOST:PORT, such as 10.0.0.2:5301");
  return {text.substr(0, colon), text.substr(colon + 1)};
}

Connection::~Connection() {
  if (descriptor_ >= 0) close(descriptor_);
}

Connection Connection::open(const Endpoint& peer, double timeout_s, const std::atomic<int>& stop_signal) {
  const Addresses found = resolve(peer, 0);
  const std::int64_t deadline = daqwriter::monotonic_ns() + daqwriter::to_ns(timeout_s);
  while (true) {
    const int descriptor = try_to_connect(*found);
    if (descriptor >= 0) {
      without_delay(descriptor);
      return Connection(descriptor, peer.text());
    }
    if (daqwriter::monotonic_ns() >= deadline || stop_signal.load() != 0)
      fail(peer.text(), "cannot be reached; is `netprobe serve` running there, and the port open?");
    daqwriter::sleep_until_monotonic_ns(daqwriter::monotonic_ns() + kPauseNs);
  }
}

void Connection::send(const Header& header, std::span<const std::byte> payload) {
  Header copy = header;
  iovec parts[2] = {{&copy, sizeof copy}, {const_cast<std::byte*>(payload.data()), payload.size()}};
  std::size_t left = sizeof copy + payload.size();
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  while (left > 0) {
    const ssize_t sent = sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) fail(peer_, "a message cannot be sent");
    std::size_t gone = static_cast<std::size_t>(sent);
    left -= gone;
    for (iovec& part : parts) {
      const std::size_t taken = std::min(gone, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      gone -= taken;
    }
  }
}

std::size_t Connection::receive(std::span<std::byte> into) {
  while (true) {
    const ssize_t got = recv(descriptor_, into.data(), into.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) fail(peer_, "nothing can be received");
  }
}

void Connection::receive_whole(std::span<std::byte> message) {
  for (std::size_t have = 0; have < message.size();) {
    const std::size_t got = receive(message.subspan(have));
    if (got == 0) throw Failure(peer_ + ": closed in the middle of a message");
    have += got;
  }
}

std::size_t Connection::receive_some(std::span<std::byte> into) {
  const ssize_t got = recv(descriptor_, into.data(), into.size(), MSG_DONTWAIT);
  if (got == 0) throw Failure(peer_ + ": closed in the middle of a message");
  if (got > 0) return static_cast<std::size_t>(got);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  fail(peer_, "nothing can be received");
}

std::uint32_t Connection::segments_sent_again() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_total_retrans : 0;
}

int listen_on(const Endpoint& at) {
  const Addresses found = resolve(at, AI_PASSIVE);
  const int descriptor = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
  const int on = 1;
  if (descriptor >= 0) setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (descriptor < 0 || bind(descriptor, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(descriptor, 64) != 0) {
    const std::string reason = daqwriter::errno_text(errno);
    if (descriptor >= 0) close(descriptor);
    throw Refusal("--listen " + at.text() + ": " + reason +
                  ". Give an address of this machine and a free port");
  }
  return descriptor;
}

int next_caller(int listener, int timeout_ms) {
  pollfd waiting{listener, POLLIN, 0};
  if (poll(&waiting, 1, timeout_ms) <= 0) return -1;
  const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor >= 0) without_delay(descriptor);
  return descriptor;
}

}  // namespace netprobe
