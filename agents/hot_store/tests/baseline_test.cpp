// Baselines keep what they were given and refuse what the store refuses; a backlog is checked before anything
// is opened.
#include <gtest/gtest.h>

#include "backlog.h"
#include "base/status.h"
#include "baselines.h"
#include "store_options.h"
#include "support.h"

namespace hotstore::testing {
namespace {

using daqwriter::Refusal;

const Key kKey{7, 1, 1};
const std::string kValue(10'000, 'v');

std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return "";
}

void expect_a_store(Subject& subject) {
  const auto session = subject.session();
  Bytes value;
  EXPECT_EQ(session->get(kKey, value), Answer::not_found);
  EXPECT_EQ(session->put(kKey, kValue, Level::fast), Answer::ok);
  EXPECT_EQ(session->put(kKey, kValue, Level::fast), Answer::exists)
      << "a put of a key that is there is refused";
  EXPECT_EQ(session->get(kKey, value), Answer::ok);
  EXPECT_EQ(value, kValue);
  EXPECT_EQ(session->remove(kKey), Answer::ok);
  EXPECT_EQ(session->remove(kKey), Answer::not_found);
}

std::unique_ptr<Subject> open_raw(const TempDir& directory, std::uint64_t capacity = kCapacity) {
  return open_raw_lmdb(open_env(directory.path("raw"), capacity), schema_of_paper());
}

StoreOptions with_engine(const std::string& engine) {
  StoreOptions options;
  options.engine = engine;
  return options;
}

TEST(RawLmdb, KeepsWhatItWasGivenAndRefusesAKeyThatIsThere) {
  TempDir directory;
  const auto raw = open_raw(directory);
  expect_a_store(*raw);
  EXPECT_EQ(raw->promise(), promise_of(Durability::process));
}

TEST(RawLmdb, ThatIsFullSaysSoAndCanBeEmptied) {
  TempDir directory;
  const auto raw = open_raw(directory, kLeastCapacity);
  const auto session = raw->session();
  std::uint64_t event = 0;
  while (session->put({event, 1, 1}, kValue, Level::fast) == Answer::ok) ++event;
  EXPECT_EQ(session->put({event, 1, 1}, kValue, Level::fast), Answer::full);
  EXPECT_EQ(session->remove({0, 1, 1}), Answer::ok);
}

TEST(RawLmdb, AndTheHotStoreRefuseEachOthersFolders) {
  TempDir directory;
  StoreOptions options = with_engine("lmdb");
  options.capacity = kCapacity;
  open_raw(directory);
  options.directory = directory.path("raw").string();
  EXPECT_NE(refusal_of([&] { open_store(options); }).find("records without checksums"), std::string::npos);
  options.directory = directory.path("own").string();
  open_store(options);
  options.engine = kRawLmdb;
  EXPECT_NE(refusal_of([&] { open_subject(options, ""); }).find("a folder of its own"), std::string::npos);
}

TEST(RocksDb, KeepsWhatItWasGivenWhereTheLibraryIs) {
  TempDir directory;
  std::unique_ptr<Subject> subject;
  try {
    subject = open_rocksdb(kRocksDbLibrary, directory.path("rocks").string(), Durability::process,
                           schema_of_paper());
  } catch (const Refusal& refusal) {
    // Only a machine without the library may leave this out: any other refusal is wrong.
    const std::string said = refusal.what();
    ASSERT_NE(said.find("the library cannot be loaded"), std::string::npos) << said;
    GTEST_SKIP() << said;
  }
  expect_a_store(*subject);
  EXPECT_EQ(subject->promise(), promise_of(Durability::process));
  EXPECT_THROW(
      open_rocksdb(kRocksDbLibrary, directory.path("rocks").string(), Durability::process, schema_of_paper()),
      Refusal);
}

TEST(RocksDb, ThatIsNotThereOrIsAnotherLibraryIsRefusedByName) {
  TempDir directory;
  const std::string place = directory.path("rocks").string();
  const auto with = [&](const char* library) {
    return refusal_of([&] { open_rocksdb(library, place, Durability::process, schema_of_paper()); });
  };
  EXPECT_NE(with("librocksdb-none.so").find("librocksdb-none.so"), std::string::npos);
  EXPECT_NE(with("librocksdb-none.so").find("librocksdb7.8"), std::string::npos);
  EXPECT_NE(with("libm.so.6").find("is not RocksDB"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(place));
}

TEST(RawRedis, ThatIsNotThereIsRefused) {
  EXPECT_THROW(open_raw_redis({"127.0.0.1", 1}, schema_of_paper()), Refusal);
}

TEST(Baseline, RefusesWhatIsOfTheLayer) {
  StoreOptions level2 = with_engine(kRawLmdb);
  level2.directory = "a";
  level2.level2_directory = "b";
  EXPECT_THROW(check_store(level2), Refusal);
  EXPECT_THROW(check_store(with_engine(kRawLmdb)), Refusal) << "no directory";
  EXPECT_THROW(check_store(with_engine(kRocksDb)), Refusal) << "no directory";
  EXPECT_THROW(check_store(with_engine(kRawRedis)), Refusal) << "no endpoint";
}

TEST(Backlog, TakesWholePagesAndWhatTheEngineAddsToAValue) {
  EXPECT_DOUBLE_EQ(backlog_room("lmdb", 1000, 3'000), 4096.0);  // three records of 1 kB to a page
  EXPECT_DOUBLE_EQ(backlog_room("lmdb", 10'000, 10'000), 3 * 4096.0 + 26);
  EXPECT_GT(backlog_room("redis", 1000, 1'000'000), 1'000'000.0);
  EXPECT_GT(backlog_room("rocksdb", 1000, 1'000'000), 2'000'000.0);
}

TEST(Backlog, BeyondTheCapacityOrTheMemoryIsRefusedWithTheArithmetic) {
  StoreOptions store = with_engine("lmdb");
  LoadOptions load;
  load.backlog_bytes = 4ull << 30;
  const std::string capacity = refusal_of([&] { check_backlog(store, load, true); });
  for (const char* words : {"--backlog 4GiB", "values of 1000 B take", "--capacity is 1GiB", "give a larger"})
    EXPECT_NE(capacity.find(words), std::string::npos) << capacity;
  load.backlog_bytes = 64ull << 40;
  for (const char* engine : {"lmdb", "rocksdb", "redis"}) {
    store = with_engine(engine);
    store.capacity = kMostCapacity;
    if (!is_embedded(engine)) store.endpoints = {"127.0.0.1:6379"};
    const std::string memory = refusal_of([&] { check_backlog(store, load, false); });
    EXPECT_NE(memory.find("of memory available"), std::string::npos) << engine << memory;
  }
  store.endpoints = {"10.0.0.1:6379"};
  EXPECT_EQ(refusal_of([&] { check_backlog(store, load, true); }), "")
      << "another machine's memory is not known";
}

}  // namespace
}  // namespace hotstore::testing
