// Tests of the distributed engine that need no server;
// robot-suites/tests/test_hot_store.py starts real ones.
#include <gtest/gtest.h>

#include <set>

#include "base/status.h"
#include "placement.h"

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

TEST(Placement, WithHashEveryNodeGetsAboutItsShareOfTheEvents) {
  const Placement placement(Location::parse("hash"), kThreeShards);
  std::vector<int> events(3);
  for (std::uint64_t event = 0; event < 30'000; ++event) ++events[placement.node_of(event)];
  for (const int each : events) EXPECT_NEAR(each, 10'000, 4'000);  // 64 buckets are not dealt out evenly
}

TEST(Placement, WithALocationMapAnEventIsOnItsNodeAndNowhereElse) {
  const Placement modulo(Location::parse("modulo"), kThreeShards);
  const Placement table(Location::parse("0-99=2,100-199=0"), kThreeShards);
  for (std::uint64_t event = 0; event < 200; ++event) {
    EXPECT_EQ(modulo.node_of(event), event % 3);
    EXPECT_EQ(table.node_of(event), event < 100 ? 2u : 0u);
    for (const Placement* placement : {&modulo, &table}) {
      const unsigned slot = Placement::slot(placement->bucket_of(event));
      const Shard& shard = kThreeShards[placement->node_of(event)];
      EXPECT_TRUE(shard.first <= slot && slot <= shard.last);
    }
  }
  EXPECT_THROW(table.node_of(200), Refusal);
  EXPECT_THROW(Placement(Location::parse("0-9=3"), kThreeShards), Refusal);
}

TEST(Placement, IsNamedSoThatAnotherOneCanBeRefused) {
  const std::vector<Shard> one{{0, 16383, {"a", 1}}};
  EXPECT_EQ(Placement(Location::parse("hash"), one).text(),
            Placement(Location::parse("hash"), kThreeShards).text());
  EXPECT_NE(Placement(Location::parse("modulo"), one).text(),
            Placement(Location::parse("modulo"), kThreeShards).text());
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

}  // namespace
}  // namespace hotstore
