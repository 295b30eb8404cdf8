// Tests of the distributed engine that need no server;
// robot-suites/tests/test_hot_store.py starts real ones.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/status.h"
#include "sharding.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;

const std::vector<Shard> kThreeShards{{0, 5460, {"a", 1}}, {5461, 10922, {"b", 1}}, {10923, 16383, {"c", 1}}};

TEST(Slots, AreThoseOfTheClusterSpecification) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);
  EXPECT_EQ(slot_of("foo"), 12182u);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_EQ(slot_of("foo{}{bar}"), crc16("foo{}{bar}") % kSlots) << "empty braces are no tag";
  EXPECT_EQ(slot_of("foo{{bar}}zap"), crc16("{bar") % kSlots);
}

TEST(Location, IsReadOrRefusedWithTheSpellingToUse) {
  EXPECT_EQ(Location::parse("hash").text(), "hash");
  EXPECT_EQ(Location::parse("10-19=1,0-9=0").text(), "0-9=0,10-19=1");
  for (const char* text : {"", "somewhere", "0-9", "0=1", "9-0=1", "0-9=1,5-7=0", "0-9=1x"})
    EXPECT_THROW(Location::parse(text), Refusal) << text;
}

TEST(Sharding, WithHashEveryNodeGetsAboutItsShareOfTheEvents) {
  const Sharding sharding(Location::parse("hash"), kThreeShards);
  std::vector<int> events(3);
  for (std::uint64_t event = 0; event < 30'000; ++event) ++events[sharding.node_of(event)];
  for (const int each : events) EXPECT_NEAR(each, 10'000, 4'000);  // 64 buckets are not dealt out evenly
}

TEST(Sharding, WithALocationMapAnEventIsOnItsNodeAndNowhereElse) {
  const Sharding modulo(Location::parse("modulo"), kThreeShards);
  const Sharding table(Location::parse("0-99=2,100-199=0"), kThreeShards);
  for (std::uint64_t event = 0; event < 200; ++event) {
    EXPECT_EQ(modulo.node_of(event), event % 3);
    EXPECT_EQ(table.node_of(event), event < 100 ? 2u : 0u);
    for (const Sharding* sharding : {&modulo, &table}) {
      const unsigned slot = Sharding::slot(sharding->bucket_of(event));
      const Shard& shard = kThreeShards[sharding->node_of(event)];
      EXPECT_TRUE(shard.first <= slot && slot <= shard.last);
    }
  }
  EXPECT_THROW(table.node_of(200), Refusal);
  EXPECT_THROW(Sharding(Location::parse("0-9=3"), kThreeShards), Refusal);
}

TEST(Sharding, IsNamedSoThatAnotherOneCanBeRefused) {
  const std::vector<Shard> one{{0, 16383, {"a", 1}}};
  EXPECT_EQ(Sharding(Location::parse("hash"), one).text(),
            Sharding(Location::parse("hash"), kThreeShards).text());
  EXPECT_NE(Sharding(Location::parse("modulo"), one).text(),
            Sharding(Location::parse("modulo"), kThreeShards).text());
}

TEST(Endpoint, IsReadOrRefused) {
  EXPECT_EQ(Endpoint::parse("127.0.0.1:6379").port, 6379);
  for (const char* text : {"", "host", ":1", "host:", "host:0", "host:65536", "host:1x"})
    EXPECT_THROW(Endpoint::parse(text), Refusal) << text;
}

TEST(Endpoint, OfAUnixSocketIsOneThatIsThereAndFitsTheKernel) {
  for (const std::string& text :
       {std::string("unix:"), "unix:/" + std::string(200, 'x'), std::string("unix:/etc/hostname"),
        std::string("unix:/nonexistent/redis.sock")})
    EXPECT_THROW(Endpoint::parse(text), Refusal) << text;
}

TEST(Redis, ThatIsNotThereIsRefused) {
  RedisOptions options;
  options.endpoints = {{"127.0.0.1", 1}};
  EXPECT_THROW(RedisLink link(options), Refusal);
}

// A server that gives one answer to everything. Ends with its client.
class LyingRedis {
 public:
  explicit LyingRedis(std::string answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(listener_, 8) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("no socket to listen on");
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~LyingRedis() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  LyingRedis(const LyingRedis&) = delete;
  LyingRedis& operator=(const LyingRedis&) = delete;
  Endpoint endpoint() const { return {"127.0.0.1", port_}; }

 private:
  void serve() const {
    for (int peer = 0; (peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; close(peer)) {
      std::array<char, 4096> asked{};
      while (recv(peer, asked.data(), asked.size(), 0) > 0 &&
             send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL) > 0) {
      }
    }
  }

  std::string answer_;
  int listener_ = -1, port_ = 0;
  std::thread thread_;
};

TEST(Redis, ThatAnswersWithNoMapOfAllSlotsIsRefused) {
  const std::string node = "*2\r\n$1\r\na\r\n:7000\r\n";
  const auto piece = [&](const std::string& first, const std::string& last) {
    return "*3\r\n:" + first + "\r\n:" + last + "\r\n" + node;
  };
  const std::vector<std::string> lies = {
      "*2\r\n:1\r\n:2\r\n",  // integers instead of pieces
      "*0\r\n",
      "+OK\r\n",
      ":16384\r\n",
      "$-1\r\n",
      "*1\r\n*2\r\n:0\r\n:16383\r\n",                    // a piece without a node
      "*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n",              // a node without anything
      "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n:1\r\n:2\r\n",  // a number for a host
      "*1\r\n" + piece("0", "16384"),
      "*1\r\n" + piece("-1", "16383"),
      "*1\r\n" + piece("16383", "0"),
      "*2\r\n" + piece("0", "8191") + piece("0", "8191"),  // half of them twice
      "*2147483647\r\n"};
  for (const std::string& lie : lies) {
    const LyingRedis server(lie);
    RedisOptions options;
    options.endpoints = {server.endpoint()};
    options.cluster = true;
    EXPECT_THROW(RedisLink link(options), Refusal) << lie;
  }
  const LyingRedis honest("*2\r\n" + piece("8192", "16383") + piece("0", "8191"));
  RedisOptions options;
  options.endpoints = {honest.endpoint()};
  options.cluster = true;
  EXPECT_EQ(RedisLink(options).shards().front().owner.text(), "a:7000");
}

}  // namespace
}  // namespace hotstore
