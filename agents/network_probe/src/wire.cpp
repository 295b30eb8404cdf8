#include "wire.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "base/stop_clock.h"
#include "base/units.h"

namespace netprobe {
namespace {

using daqwriter::Failure;
using daqwriter::Refusal;

constexpr std::int64_t kPauseNs = 50'000'000;  // between two tries to connect
constexpr int kWireLookMs = 100;

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

[[noreturn]] void give_in(const std::string& peer) {
  throw Interrupted(peer + ": interrupted while it was waited for");
}

bool asked_to_end(const Patience& patience) {
  return patience.stop && patience.stop->load() != 0;
}

// Returns whether it is connected; else errno says why not (ETIMEDOUT at `deadline_ns`).
bool connected(int descriptor, const addrinfo& address, std::int64_t deadline_ns, const Patience& patience) {
  if (connect(descriptor, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  while (daqwriter::monotonic_ns() < deadline_ns && !asked_to_end(patience)) {
    pollfd writable{descriptor, POLLOUT, 0};
    if (poll(&writable, 1, kWireLookMs) <= 0) continue;
    socklen_t size = sizeof errno;
    int error = 0;
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error == 0;
  }
  errno = ETIMEDOUT;
  return false;
}

// -1 and errno when there is no connection.
int try_to_connect(const addrinfo& address, std::int64_t deadline_ns, const Patience& patience) {
  const int kind = address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const int descriptor = socket(address.ai_family, kind, address.ai_protocol);
  if (descriptor < 0) return -1;
  if (connected(descriptor, address, deadline_ns, patience) && fcntl(descriptor, F_SETFL, 0) == 0)
    return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

// Each of the peer's addresses in turn; one that swallows everything leaves time for the others.
int try_all(const addrinfo* addresses, std::int64_t deadline_ns, const Patience& patience) {
  std::int64_t left = 0;
  for (const addrinfo* one = addresses; one; one = one->ai_next) ++left;
  for (const addrinfo* one = addresses; one; one = one->ai_next, --left) {
    const std::int64_t now = daqwriter::monotonic_ns();
    const std::int64_t share = std::max<std::int64_t>(deadline_ns - now, kPauseNs) / left;
    const int descriptor = try_to_connect(*one, now + share, patience);
    if (descriptor >= 0) return descriptor;
  }
  return -1;
}

// A waiting call returns at this interval to check the signal and the clock.
void look_up(int descriptor) {
  const timeval often{0, kWireLookMs * 1000};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof often);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &often, sizeof often);
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

// One wait for the peer; asked after each call that has waited for nothing.
class Connection::Wait {
 public:
  explicit Wait(const Connection& connection) : connection_(connection) {}

  void progress() { silent_ = false; }
  // Returns when the call is to be repeated; errno is the call's.
  void again(const char* what) {
    if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) fail(connection_.peer_, what);
    const Patience& patience = connection_.patience_;
    if (asked_to_end(patience)) give_in(connection_.peer_);
    const std::int64_t now = daqwriter::monotonic_ns();
    if (!std::exchange(silent_, true)) silence_.restart(now);
    if (!silence_.exceeds(patience.stall_ns, now)) return;
    throw Failure(connection_.peer_ + ": " + what + ": it has been silent for " +
                  daqwriter::format_number(daqwriter::seconds(patience.stall_ns)) +
                  " s; look at the peer and the network, or raise --stall-limit");
  }

 private:
  const Connection& connection_;
  daqwriter::Silence silence_;
  bool silent_ = false;
};

Connection Connection::open(const Endpoint& peer, double timeout_s, const Patience& patience) {
  const Addresses found = resolve(peer, 0);
  const std::int64_t deadline = daqwriter::monotonic_ns() + daqwriter::to_ns(timeout_s);
  while (true) {
    const int descriptor = try_all(found.get(), deadline, patience);
    if (descriptor >= 0) {
      without_delay(descriptor);
      look_up(descriptor);
      Connection connection(descriptor, peer.text());
      connection.patience_ = patience;
      return connection;
    }
    if (asked_to_end(patience)) give_in(peer.text());
    if (daqwriter::monotonic_ns() >= deadline)
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
  Wait wait(*this);
  while (left > 0) {
    const ssize_t sent = sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      wait.again("a message cannot be sent");
      continue;
    }
    wait.progress();
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
  for (Wait wait(*this);; wait.again("nothing can be received")) {
    const ssize_t got = recv(descriptor_, into.data(), into.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
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
