// Promise: `netprobe serve` answers every request with as many bytes as it asks for, each connection in a
// thread of its own, until it is told to end. A peer that sends anything else, or breaks off, loses its
// connection and harms no other.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "commands.h"
#include "wire.h"

namespace netprobe {
namespace {

using daqwriter::ExitCode;

constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kLookMs = 100;  // how soon a signal is seen

struct Served {
  Connection connection;
  std::thread thread;
  std::atomic<bool> done{false};
  explicit Served(int descriptor) : connection(descriptor, "a peer") {}
};

// Requests as they come: several may be there at once, and one in several pieces.
class Inbox {
 public:
  explicit Inbox(Connection& connection) : connection_(connection), bytes_(kReadBytes) {}

  // False: the peer has closed behind a whole request.
  bool next(Header& request) {
    if (!have(sizeof request)) return false;
    std::memcpy(&request, bytes_.data(), sizeof request);
    const bool ours = request.magic == kMagic && request.size >= sizeof request && request.size <= kSizeMax;
    if (!ours || request.answer < sizeof request || request.answer > kSizeMax)
      throw daqwriter::Failure("a peer: this is no request of netprobe");
    if (!have(request.size)) throw daqwriter::Failure("a peer: closed in the middle of a message");
    held_ -= request.size;
    std::memmove(bytes_.data(), bytes_.data() + request.size, held_);
    return true;
  }

 private:
  bool have(std::size_t wanted) {
    if (bytes_.size() < wanted) bytes_.resize(wanted);
    while (held_ < wanted) {
      const std::size_t got = connection_.receive(std::span(bytes_).subspan(held_));
      if (got == 0 && held_ == 0) return false;
      if (got == 0) throw daqwriter::Failure("a peer: closed in the middle of a message");
      held_ += got;
    }
    return true;
  }

  Connection& connection_;
  std::vector<std::byte> bytes_;
  std::size_t held_ = 0;
};

void answer_all(Connection& connection) {
  Inbox inbox(connection);
  std::vector<std::byte> outgoing;
  Header request;
  while (inbox.next(request)) {
    outgoing.resize(request.answer - sizeof request);
    Header reply;
    reply.size = request.answer;
    if (request.size == sizeof request)
      reply.answer = connection.segments_sent_again();  // the request only asks for this number
    reply.event = request.event;
    connection.send(reply, outgoing);
  }
}

void serve_one(Served& one) {
  try {
    answer_all(one.connection);
  } catch (const std::exception& failure) {  // std::bad_alloc too: as much as a peer asks for
    std::fprintf(stderr, "netprobe: %s\n", failure.what());
  }
  shutdown(one.connection.descriptor(), SHUT_RDWR);
  one.done = true;
}

ExitCode run_serve(const Endpoint& at, unsigned connections, const std::atomic<int>& stop_signal) {
  const Connection listener(listen_on(at), at.text());
  std::list<std::unique_ptr<Served>> served;
  const auto ended = [](const std::unique_ptr<Served>& one) {
    if (!one->done) return false;
    one->thread.join();
    return true;
  };
  unsigned accepted = 0;
  while (stop_signal.load() == 0 && (connections == 0 || accepted < connections || !served.empty())) {
    const int caller = next_caller(listener.descriptor(), kLookMs);
    served.remove_if(ended);
    if (caller < 0) continue;
    ++accepted;
    auto one = std::make_unique<Served>(caller);
    try {
      one->thread = std::thread([served_one = one.get()] { serve_one(*served_one); });
    } catch (const std::system_error& failure) {
      std::fprintf(stderr, "netprobe: a peer: no thread is left to answer it: %s\n", failure.what());
      continue;
    }
    served.push_back(std::move(one));
  }
  for (const std::unique_ptr<Served>& one : served) shutdown(one->connection.descriptor(), SHUT_RDWR);
  for (const std::unique_ptr<Served>& one : served) one->thread.join();
  return ExitCode::complete;
}

}  // namespace

daqwriter::ParsedCommand add_serve(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("serve", "Answer the other commands' requests until SIGINT or SIGTERM");
  auto at = std::make_shared<std::string>();
  auto connections = std::make_shared<unsigned>(0);
  app->add_option("--listen", *at, "HOST:PORT to listen on; HOST is an address of the data network")
      ->required();
  app->add_option("--connections", *connections, "End when so many peers have come and gone; 0: never")
      ->capture_default_str();
  return {app, [at, connections](const std::atomic<int>& stop_signal) {
            return run_serve(parse_endpoint("--listen", *at), *connections, stop_signal);
          }};
}

}  // namespace netprobe
