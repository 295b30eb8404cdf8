// Promise: `netprobe serve` answers every request with as many bytes as it asks for, each connection in a
// thread of its own, until it is told to end. A peer that sends anything else, or breaks off, loses its
// connection and harms no other.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "commands.h"
#include "wire.h"

namespace netprobe {
namespace {

using daqwriter::ExitCode;

constexpr int kLookMs = 100;  // how soon a signal is seen

struct Served {
  Connection connection;
  std::thread thread;
  std::atomic<bool> done{false};
  explicit Served(int descriptor) : connection(descriptor, "a peer") {}
};

void answer_all(Connection& connection) {
  std::vector<std::byte> incoming, outgoing;
  Header request;
  while (connection.receive(request)) {
    incoming.resize(request.size - sizeof request);
    connection.receive_rest(incoming);
    if (request.answer < sizeof request || request.answer > kSizeMax)
      throw daqwriter::Failure("a peer: asks for an answer of " + std::to_string(request.answer) + " bytes");
    outgoing.resize(request.answer - sizeof request);
    Header reply;
    reply.size = request.answer;
    reply.answer = connection.segments_sent_again();
    reply.event = request.event;
    connection.send(reply, outgoing);
  }
}

void serve_one(Served& one) {
  try {
    answer_all(one.connection);
  } catch (const daqwriter::Failure& failure) {
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
    served.push_back(std::make_unique<Served>(caller));
    Served& one = *served.back();
    one.thread = std::thread([&one] { serve_one(one); });
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
