// The store's semantics on the real embedded engine.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "base/status.h"
#include "support.h"

namespace hotstore {
namespace {

using daqwriter::Refusal;
using testing::open_lmdb;
using testing::TempDir;
using testing::TestClock;

class Embedded : public ::testing::Test {
 protected:
  TempDir directory;
  TestClock clock;
};

TEST_F(Embedded, PutRefusesAKeyThatIsThereAndLeavesIt) {
  HotStore store = open_lmdb(directory, clock);
  Bytes value;
  EXPECT_EQ(store.put({1, 2, 3}, "first"), Answer::ok);
  EXPECT_EQ(store.put({1, 2, 3}, "second"), Answer::exists);
  EXPECT_EQ(store.put({1, 2, 3}, "second", Level::large), Answer::exists);
  EXPECT_EQ(store.get({1, 2, 3}, value), Answer::ok);
  EXPECT_EQ(value, "first");
  EXPECT_EQ(store.sweep(), 0u);
}

TEST_F(Embedded, BehavesLikeAPlainMapOverRandomOperations) {
  std::mt19937_64 random(7);
  const KeySchema schema = KeySchema::parse("detector:4,event:6,run:3", "event");
  HotStore store = open_lmdb(directory, clock, schema);
  std::map<Bytes, std::pair<Bytes, Level>> model;
  const auto any_key = [&] { return Key{random() % 8, random() % 24, random() % 4}; };
  const auto any_level = [&] { return random() % 3 == 0 ? Level::large : Level::fast; };
  for (int step = 0; step < 6'000; ++step) {
    const Key key = any_key();
    const Bytes at = schema.encode(key);
    const bool there = model.contains(at);
    const Bytes value(random() % 5'000, static_cast<char>('a' + random() % 26));
    switch (random() % 6) {
      case 0:
      case 1: {
        const Level level = any_level();
        ASSERT_EQ(store.put(key, value, level), there ? Answer::exists : Answer::ok);
        if (!there) model[at] = {value, level};
        break;
      }
      case 2: {
        Bytes found;
        Level level{};
        ASSERT_EQ(store.get(key, found, &level), there ? Answer::ok : Answer::not_found);
        if (there) {
          ASSERT_EQ(found, model[at].first);
          ASSERT_EQ(level, model[at].second);
        }
        break;
      }
      case 3: {
        Change change;
        if (random() % 2) change.value = value;
        if (random() % 2) change.level = any_level();
        ASSERT_EQ(store.update(key, change), there ? Answer::ok : Answer::not_found);
        if (there && change.value) model[at].first = value;
        if (there && change.level) model[at].second = *change.level;
        break;
      }
      case 4:
        ASSERT_EQ(store.remove(key), there ? Answer::ok : Answer::not_found);
        model.erase(at);
        break;
      default: {
        Box box{any_key(), any_key()};
        for (std::size_t i = 0; i < 3 && random() % 8; ++i)
          if (box.lower[i] > box.upper[i]) std::swap(box.lower[i], box.upper[i]);
        const std::vector<Item> found = store.range(box);
        auto next = found.begin();
        for (const auto& [encoded, expected] : model) {
          if (!schema.contains(box, schema.decode(encoded))) continue;
          ASSERT_NE(next, found.end());
          ASSERT_EQ(schema.encode(next->key), encoded);
          ASSERT_EQ(next->value, expected.first);
          ASSERT_EQ(next->level, expected.second);
          ++next;
        }
        ASSERT_EQ(next, found.end());
      }
    }
  }
  EXPECT_EQ(store.sweep(), 0u) << "values of level 2 were left behind";
}

TEST_F(Embedded, GetAnyHandsEveryEventToOneOfManyConsumers) {
  constexpr std::uint64_t kEvents = 400;
  constexpr int kConsumers = 8;
  HotStore store = open_lmdb(directory, clock);
  for (std::uint64_t event = 0; event < kEvents; ++event) {
    ASSERT_EQ(store.put({event, 1, 1}, "a"), Answer::ok);
    ASSERT_EQ(store.put({event, 2, 1}, "b", event % 2 ? Level::large : Level::fast), Answer::ok);
  }
  std::vector<std::vector<std::uint64_t>> got(kConsumers);
  std::vector<std::jthread> consumers;
  for (int i = 0; i < kConsumers; ++i)
    consumers.emplace_back([&, i] {
      while (const auto claim = store.get_any("c" + std::to_string(i), 60)) {
        got[static_cast<std::size_t>(i)].push_back(claim->primary);
        EXPECT_EQ(store.event(claim->primary).size(), 2u);
        EXPECT_EQ(store.complete(*claim), Answer::ok);
      }
    });
  consumers.clear();
  std::multiset<std::uint64_t> all;
  for (const auto& each : got) all.insert(each.begin(), each.end());
  EXPECT_EQ(all.size(), kEvents);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), kEvents);
  EXPECT_TRUE(store.range(store.schema().everything()).empty());
  EXPECT_EQ(store.sweep(), 0u);
}

TEST_F(Embedded, AnEventComesBackWhenItsLeaseRunsOutAndItsLateConsumerIsFencedOff) {
  HotStore store = open_lmdb(directory, clock);
  ASSERT_EQ(store.put({5, 1, 1}, "a"), Answer::ok);
  const auto late = store.get_any("late", 2);
  ASSERT_TRUE(late);
  EXPECT_FALSE(store.get_any("other", 2));
  EXPECT_EQ(store.remove({5, 1, 1}), Answer::locked);
  EXPECT_EQ(store.update({5, 1, 1}, {.value = "x", .level = {}}), Answer::locked);
  clock.now_ms += 1'900;
  EXPECT_EQ(store.renew(*late, 2), Answer::ok);
  clock.now_ms += 1'900;
  EXPECT_FALSE(store.get_any("other", 2));
  clock.now_ms += 200;
  const auto other = store.get_any("other", 2);
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->returned);
  EXPECT_GT(other->token, late->token);
  EXPECT_EQ(store.remove({5, 1, 1}, late->token), Answer::lease_lost);
  EXPECT_EQ(store.complete(*late), Answer::lease_lost);
  EXPECT_EQ(store.renew(*late, 2), Answer::lease_lost);
  EXPECT_EQ(store.complete(*other), Answer::ok);
  EXPECT_EQ(store.complete(*other), Answer::lease_lost);
  EXPECT_FALSE(store.get_any("other", 2));
}

TEST_F(Embedded, ALeaseThatRanOutIsLostEvenWhenNobodyElseAskedForTheEvent) {
  HotStore store = open_lmdb(directory, clock);
  ASSERT_EQ(store.put({5, 1, 1}, "a"), Answer::ok);
  const auto claim = store.get_any("late", 1);
  clock.now_ms += 1'001;
  EXPECT_EQ(store.complete(*claim), Answer::lease_lost);
  EXPECT_EQ(store.remove({5, 1, 1}), Answer::ok) << "nobody holds it";
  EXPECT_FALSE(store.get_any("other", 1));
}

TEST_F(Embedded, LockedCanBeSetAndClearedByHand) {
  HotStore store = open_lmdb(directory, clock);
  Claim held;
  EXPECT_EQ(store.lock(9, "operator", held), Answer::not_found);
  ASSERT_EQ(store.put({9, 1, 1}, "a"), Answer::ok);
  ASSERT_EQ(store.lock(9, "operator", held), Answer::ok);
  clock.now_ms += 1'000'000'000;
  EXPECT_FALSE(store.get_any("consumer", 1));
  EXPECT_EQ(store.unlock({9, held.token + 1, false}), Answer::lease_lost);
  EXPECT_EQ(store.unlock(held), Answer::ok);
  EXPECT_TRUE(store.get_any("consumer", 1));
}

TEST_F(Embedded, GetAnyTakesFromTheLevelThatIsAskedFor) {
  HotStore store = open_lmdb(directory, clock);
  ASSERT_EQ(store.put({1, 1, 1}, "a"), Answer::ok);
  ASSERT_EQ(store.put({2, 1, 1}, "b", Level::large), Answer::ok);
  const auto large = store.get_any("x", 1, Level::large);
  ASSERT_TRUE(large);
  EXPECT_EQ(large->primary, 2u);
  EXPECT_FALSE(store.get_any("x", 1, Level::large));
  ASSERT_EQ(store.update({1, 1, 1}, {.value = {}, .level = Level::large}), Answer::ok);
  const auto moved = store.get_any("x", 1, Level::large);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->primary, 1u);
}

TEST_F(Embedded, DataLocksAndSchemaSurviveARestart) {
  Token token = 0;
  {
    HotStore store = open_lmdb(directory, clock);
    ASSERT_EQ(store.put({1, 1, 1}, "a"), Answer::ok);
    ASSERT_EQ(store.put({2, 1, 1}, "b", Level::large), Answer::ok);
    token = store.get_any("before", 10)->token;
  }
  HotStore store = open_lmdb(directory, clock);
  EXPECT_EQ(store.range(store.schema().everything()).size(), 2u);
  const auto second = store.get_any("after", 10);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->primary, 2u);
  EXPECT_GT(second->token, token);
  EXPECT_FALSE(store.get_any("after", 10));
}

TEST_F(Embedded, AnotherSchemaIsRefusedAtOpening) {
  { HotStore store = open_lmdb(directory, clock); }
  EXPECT_THROW(open_lmdb(directory, clock, KeySchema::parse("event:64,detector:16", "event")), Refusal);
  EXPECT_THROW(open_lmdb(directory, clock, KeySchema::parse("event:64,detector:16,run:16", "run")), Refusal);
}

TEST_F(Embedded, AFullStoreSaysSoAndStillGivesItsEventsAway) {
  HotStore store = open_lmdb(directory, clock, testing::schema_of_paper(), 8 << 20);
  const Bytes value(10'000, 'x');
  std::uint64_t events = 0;
  Answer answer = Answer::ok;
  while ((answer = store.put({events, 1, 1}, value)) == Answer::ok) ++events;
  EXPECT_EQ(answer, Answer::full);
  EXPECT_GT(events, 200u);
  for (std::uint64_t i = 0; i < events; ++i) {
    const auto claim = store.get_any("consumer", 10);
    ASSERT_TRUE(claim);
    ASSERT_EQ(store.complete(*claim), Answer::ok);
  }
  EXPECT_EQ(store.put({events, 1, 1}, value), Answer::ok);
}

TEST_F(Embedded, ValuesOfLevelTwoThatAKilledProcessLeftAreSweptAway) {
  const KeySchema schema = testing::schema_of_paper();
  {
    // As a process leaves it that was killed between the value and its key.
    LevelFolder fast(directory.path("fast"));
    fast.keep();
    auto large = std::make_unique<LevelFolder>(directory.path("large"), Access::change, &fast);
    const auto values = lmdb_value_store(
        std::make_unique<LmdbEnv>(std::move(large), testing::kCapacity, Durability::process));
    ASSERT_EQ(values->put(schema.encode({1, 1, 1}) + "12345678", "left"), Answer::ok);
  }
  HotStore store = open_lmdb(directory, clock);
  ASSERT_EQ(store.put({1, 1, 1}, "kept", Level::large), Answer::ok);
  EXPECT_EQ(store.sweep(), 1u);
  EXPECT_EQ(store.sweep(), 0u);
  Bytes value;
  EXPECT_EQ(store.get({1, 1, 1}, value), Answer::ok);
  EXPECT_EQ(value, "kept");
}

TEST_F(Embedded, RoomIsReservedAtOpeningOrTheStoreIsRefused) {
  EXPECT_THROW(testing::open_env(directory.path("x"), 1ull << 45), Refusal);
  EXPECT_FALSE(std::filesystem::exists(directory.path("x") / "data.mdb"));
  EXPECT_THROW(testing::open_env(directory.path("x"), 1), Refusal);
  EXPECT_THROW(testing::open_env(directory.path("no") / "parent"), Refusal);
}

TEST_F(Embedded, NoLinkToAFileOfSomebodyElseIsFollowed) {
  const auto others = directory.path("others");
  for (const std::string name : {"data.mdb", "lock.mdb"})
    for (const bool symbolic : {true, false}) {
      std::ofstream(others, std::ios::trunc) << "not ours";
      const auto folder = directory.path(name + (symbolic ? "-symbolic" : "-hard"));
      testing::open_env(folder);
      std::filesystem::remove(folder / name);
      if (symbolic)
        std::filesystem::create_symlink(others, folder / name);
      else
        std::filesystem::create_hard_link(others, folder / name);
      EXPECT_THROW(testing::open_env(folder), Refusal) << folder;
      std::string kept;
      std::getline(std::ifstream(others), kept);
      EXPECT_EQ(kept, "not ours") << folder;
    }
}

// The mapped files live on without a name, and what is acknowledged then is lost.
TEST_F(Embedded, SaysThatItsFilesWereTakenAway) {
  for (const char* name : {"data.mdb", "lock.mdb"}) {
    const auto folder = directory.path(std::string("without-") + name);
    const auto env = testing::open_env(folder);
    EXPECT_EQ(env->gone(), "");
    std::filesystem::remove(folder / name);
    EXPECT_NE(env->gone().find("its files were removed or replaced"), std::string::npos) << name;
  }
  const auto folder = directory.path("replaced");
  const auto env = testing::open_env(folder);
  std::filesystem::copy_file(folder / "data.mdb", folder / "copy");
  std::filesystem::rename(folder / "copy", folder / "data.mdb");
  EXPECT_NE(env->gone(), "");
}

TEST_F(Embedded, WithDurabilityOfTheSystemManyWritersShareACommit) {
  const auto opened = testing::open_env(directory.path("shared"), 16 << 20, Durability::system);
  LmdbEnv& env = *opened;
  constexpr int kThreads = 8, kEach = 20;
  std::vector<std::jthread> writers;
  for (int t = 0; t < kThreads; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const Bytes key = std::to_string(t * kEach + i);
        env.write([&](MDB_txn* txn) {
          MDB_val at = as_val(key), value = as_val("v");
          check_lmdb(mdb_put(txn, env.table(), &at, &value, 0), "mdb_put");
        });
      }
    });
  writers.clear();
  EXPECT_LT(env.commits(), static_cast<std::uint64_t>(kThreads * kEach));
}

}  // namespace
}  // namespace hotstore
