// The probe over real TCP connections of this machine: good peers, strangers, and peers that fall silent.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/stop_clock.h"
#include "commands.h"
#include "wire.h"

namespace netprobe {
namespace {

using daqwriter::ExitCode;
using daqwriter::Failure;
using daqwriter::monotonic_ns;
using daqwriter::Refusal;

constexpr std::int64_t kShortNs = 300'000'000;

// A listening socket on a free port.
class Listener {
 public:
  Listener() : socket_(listen_on({"127.0.0.1", "0"}), "the test") {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    EXPECT_EQ(getsockname(socket_.descriptor(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = std::to_string(ntohs(at.sin_port));
  }
  Endpoint endpoint() const { return {"127.0.0.1", port_}; }
  // The peer that calls next; a second in which nobody does is a failure.
  Connection accept() const {
    const int caller = next_caller(socket_.descriptor(), 1000);
    EXPECT_GE(caller, 0);
    return Connection(caller, "a caller");
  }
  int descriptor() const { return socket_.descriptor(); }

 private:
  Connection socket_;
  std::string port_;
};

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& failure) {
    return failure.what();
  }
  return "";
}

// A command of the program, parsed and run as main() does.
ExitCode run_command(daqwriter::ParsedCommand (*add)(CLI::App&), std::vector<std::string> arguments,
                     const std::atomic<int>& stop) {
  CLI::App app("netprobe");
  const daqwriter::ParsedCommand command = add(app);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  app.parse(arguments);
  return command.run(stop);
}

class NetprobeTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder); }
  nlohmann::json result() const {
    std::ifstream file(json);
    return nlohmann::json::parse(file);
  }

  Listener listener;
  std::atomic<int> stop{0};
  std::string folder = [] {
    std::string path = std::filesystem::temp_directory_path() / "netprobe-XXXXXX";
    return std::string(mkdtemp(path.data()));
  }();
  std::string json = folder + "/result.json";
};

TEST(EndpointTest, ANameAndAPortOrARefusalThatNamesTheOption) {
  const Endpoint good = parse_endpoint("--peer", "fe80::1:5301");
  EXPECT_EQ(good.host, "fe80::1");
  EXPECT_EQ(good.port, "5301");
  for (const char* text : {"", ":", "host", "host:", ":5301", "host:53x1", "host:-1", "host:5301 "}) {
    EXPECT_NE(failure_of([&] { parse_endpoint("--peer", text); }).find("--peer"), std::string::npos) << text;
  }
}

TEST_F(NetprobeTest, AMessageArrivesWholeInWhateverPieces) {
  Connection sender = Connection::open(listener.endpoint(), 1, {});
  Connection receiver = listener.accept();
  std::vector<std::byte> payload(3'000'000);  // more than the socket's buffers
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 31);
  Header header;
  header.size = static_cast<std::uint32_t>(sizeof header + payload.size());
  header.event = 7;
  std::thread other([&] { sender.send(header, payload); });
  std::vector<std::byte> message(header.size);
  receiver.receive_whole(message);
  other.join();
  EXPECT_EQ(std::memcmp(message.data(), &header, sizeof header), 0);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), message.begin() + sizeof header));
}

TEST_F(NetprobeTest, APeerThatBreaksOffInAMessageIsAFailureThatNamesIt) {
  Connection receiver = Connection::open(listener.endpoint(), 1, {});
  {
    Connection sender = listener.accept();
    sender.send({}, {});
  }
  std::vector<std::byte> message(2 * sizeof(Header));
  const std::string said = failure_of([&] { receiver.receive_whole(message); });
  EXPECT_NE(said.find(receiver.peer()), std::string::npos) << said;
  EXPECT_NE(said.find("in the middle of a message"), std::string::npos) << said;
}

TEST_F(NetprobeTest, ASilentPeerIsGivenUpAfterItsTime) {
  Connection connection = Connection::open(listener.endpoint(), 1, {&stop, kShortNs});
  const Connection peer = listener.accept();
  std::vector<std::byte> message(sizeof(Header));
  const std::int64_t since = monotonic_ns();
  const std::string said = failure_of([&] { connection.receive_whole(message); });
  EXPECT_NE(said.find("silent for 0.3 s"), std::string::npos) << said;
  EXPECT_NE(said.find("--stall-limit"), std::string::npos) << said;
  EXPECT_GE(monotonic_ns() - since, kShortNs);
}

TEST_F(NetprobeTest, APeerThatTakesNothingIsGivenUpToo) {
  Connection connection = Connection::open(listener.endpoint(), 1, {&stop, kShortNs});
  const Connection peer = listener.accept();
  const std::vector<std::byte> payload(64u << 20);
  const std::string said = failure_of([&] { connection.send({}, payload); });
  EXPECT_NE(said.find("a message cannot be sent: it has been silent"), std::string::npos) << said;
}

TEST_F(NetprobeTest, AnInterruptionEndsTheWait) {
  Connection connection = Connection::open(listener.endpoint(), 1, {&stop});
  const Connection peer = listener.accept();
  std::thread operator_([&] {
    usleep(200'000);
    stop = 2;
  });
  std::vector<std::byte> message(sizeof(Header));
  EXPECT_THROW(connection.receive_whole(message), Interrupted);
  operator_.join();
}

TEST_F(NetprobeTest, AnAddressThatSwallowsEverythingCostsTheTimeAskedForAndNoMore) {
  // The queue of a listener that accepts nobody is full after a few callers: the next ones get no answer.
  std::vector<Connection> waiting;
  ASSERT_EQ(::listen(listener.descriptor(), 0), 0);
  std::string said;
  std::int64_t took = 0;
  for (int i = 0; i < 8 && said.empty(); ++i) {
    const std::int64_t since = monotonic_ns();
    said = failure_of([&] { waiting.push_back(Connection::open(listener.endpoint(), 0.5, {})); });
    took = monotonic_ns() - since;
  }
  EXPECT_NE(said.find("cannot be reached"), std::string::npos) << said;
  EXPECT_LT(took, 5'000'000'000);
}

TEST_F(NetprobeTest, WhoeverListensAlreadyKeepsItsPort) {
  const std::string said = failure_of([&] { listen_on(listener.endpoint()); });
  EXPECT_NE(said.find("Give an address of this machine and a free port"), std::string::npos) << said;
}

// The serving command on a port of its own, until the test ends.
class Serving {
 public:
  Serving() {
    {
      const Listener free;
      at_ = free.endpoint().text();
    }
    thread_ = std::thread([this] { code_ = run_command(add_serve, {"serve", "--listen=" + at_}, stop_); });
  }
  ~Serving() { end(); }
  ExitCode end() {
    stop_ = 15;
    if (thread_.joinable()) thread_.join();
    return code_;
  }
  const std::string& at() const { return at_; }

 private:
  std::atomic<int> stop_{0};
  std::string at_;
  ExitCode code_ = ExitCode::failed;
  std::thread thread_;
};

TEST_F(NetprobeTest, RoundTripsAreCountedOnceEachAndMeasured) {
  Serving serving;
  EXPECT_EQ(run_command(add_latency,
                        {"latency", "--peer=" + serving.at(), "--seconds=0.3", "--warm-up=0.1",
                         "--message-size=1000", "--json=" + json},
                        stop),
            ExitCode::complete);
  const auto found = result();
  EXPECT_EQ(found["status"], "complete");
  EXPECT_EQ(found["round_trips"], found["round_trip_us"]["count"]);
  EXPECT_GT(found["round_trips"], 0);
  EXPECT_GT(found["round_trip_us"]["min"], 0);
  EXPECT_EQ(serving.end(), ExitCode::complete);
}

TEST_F(NetprobeTest, AnEventIsBuiltOfAFragmentOfEachSource) {
  Serving one, two;
  EXPECT_EQ(run_command(add_build,
                        {"build", "--source=" + one.at(), "--source=" + two.at(), "--seconds=0.3",
                         "--warm-up=0.1", "--fragment-size=20KiB", "--in-flight=3", "--json=" + json},
                        stop),
            ExitCode::complete);
  const auto found = result();
  EXPECT_GT(found["events"], 0);
  for (const auto& source : found["sources"]) EXPECT_EQ(source["fragments"], found["events"]);
}

TEST_F(NetprobeTest, AStrangerLosesItsConnectionAndNobodyElseDoes) {
  Serving serving;
  Connection good = Connection::open(parse_endpoint("--peer", serving.at()), 1, {&stop, kShortNs * 10});
  const auto ask = [&](Header request) {
    Connection connection =
        Connection::open(parse_endpoint("--peer", serving.at()), 1, {&stop, kShortNs * 10});
    connection.send(request, {});
    std::vector<std::byte> byte(1);
    return connection.receive(byte);
  };
  Header foreign, short_one, greedy;
  foreign.magic = 1;
  short_one.size = 3;
  greedy.size = greedy.answer = kSizeMax + 1;
  for (const Header& bad : {foreign, short_one, greedy}) EXPECT_EQ(ask(bad), 0u);
  Header request, answer;
  request.size = request.answer = sizeof request;
  request.event = 9;
  good.send(request, {});
  good.receive_whole(std::as_writable_bytes(std::span(&answer, 1)));
  EXPECT_EQ(answer.event, 9u);
}

// Answers as the test says, over one connection.
class FalsePeer {
 public:
  FalsePeer(Listener& listener, std::function<void(Connection&, Header)> answer)
      : thread_([&listener, answer = std::move(answer)] {
          Connection caller = listener.accept();
          Header request;
          try {
            while (caller.receive(std::as_writable_bytes(std::span(&request, 1))) == sizeof request)
              answer(caller, request);
          } catch (const Failure&) {  // the command has gone
            return;
          }
        }) {}
  ~FalsePeer() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST_F(NetprobeTest, AnAnswerToAnotherQuestionIsAFailure) {
  const std::vector<std::string> measure = {"latency", "--peer=" + listener.endpoint().text(), "--warm-up=0",
                                            "--message-size=24", "--json=" + json};
  for (const auto& forge : std::vector<std::function<void(Header&)>>{
           [](Header& h) { h.event += 1; }, [](Header& h) { h.magic = 0; }, [](Header& h) { h.size = 25; }}) {
    const FalsePeer peer(listener, [&](Connection& caller, Header h) {
      forge(h);
      caller.send(h, {});
    });
    EXPECT_NE(failure_of([&] { run_command(add_latency, measure, stop); }).find("something else"),
              std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(json));
  }
}

TEST_F(NetprobeTest, ASourceThatFallsSilentIsNamed) {
  Serving good;
  const FalsePeer silent(listener, [](Connection&, Header) {});
  const std::string said = failure_of([&] {
    run_command(add_build,
                {"build", "--source=" + good.at(), "--source=" + listener.endpoint().text(), "--seconds=60",
                 "--warm-up=0", "--stall-limit=0.4", "--json=" + json},
                stop);
  });
  EXPECT_NE(said.find("are owed by " + listener.endpoint().text()), std::string::npos) << said;
  EXPECT_EQ(said.find(good.at()), std::string::npos) << said;
  EXPECT_FALSE(std::filesystem::exists(json));
}

TEST_F(NetprobeTest, AnInterruptedMeasurementSaysWhatItHas) {
  std::atomic<int> answered{0};
  const FalsePeer silent(listener, [&](Connection& caller, Header h) {
    if (++answered <= 3) caller.send(h, {});
  });
  std::thread operator_([&] {
    while (answered < 4) usleep(10'000);
    stop = 2;
  });
  EXPECT_EQ(run_command(add_latency,
                        {"latency", "--peer=" + listener.endpoint().text(), "--warm-up=0", "--seconds=60",
                         "--message-size=24", "--json=" + json},
                        stop),
            ExitCode::interrupted);
  operator_.join();
  EXPECT_EQ(result()["status"], "interrupted");
  EXPECT_EQ(result()["round_trips"], 3);
}

TEST_F(NetprobeTest, NumbersBeyondTheirBoundsAreRefusedBeforeAnybodyIsCalled) {
  const std::string peer = "--peer=" + listener.endpoint().text();
  for (const char* bad : {"--seconds=nan", "--seconds=inf", "--seconds=0", "--seconds=-1", "--warm-up=inf",
                          "--warm-up=nan", "--connect=nan", "--connect=inf", "--stall-limit=0",
                          "--message-size=23", "--message-size=64MiBx", "--message-size=65MiB"}) {
    EXPECT_THROW(run_command(add_latency, {"latency", peer, bad}, stop), Refusal) << bad;
  }
  EXPECT_EQ(next_caller(listener.descriptor(), 0), -1);
}

}  // namespace
}  // namespace netprobe
