// A folder's owner, its users, and its state after a crash of the machine.
#include "store_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "apart.h"
#include "base/clock.h"
#include "base/status.h"
#include "lmdb_keys.h"
#include "store_options.h"
#include "support.h"

namespace hotstore {
namespace {

namespace fs = std::filesystem;
using daqwriter::Refusal;
using testing::open_env;
using testing::TempDir;

class Folders : public ::testing::Test {
 protected:
  StoreOptions options(const std::string& fast, const std::string& large) const {
    StoreOptions made;
    made.directory = directory.path(fast).string();
    if (!large.empty()) made.level2_directory = directory.path(large).string();
    made.capacity = made.level2_capacity = testing::kCapacity;
    return made;
  }
  // A store with one event on each level.
  void fill(const std::string& fast, const std::string& large) const {
    HotStore store = open_store(options(fast, large));
    ASSERT_EQ(store.put({1, 1, 1}, "fast"), Answer::ok);
    ASSERT_EQ(store.put({2, 1, 1}, "large", Level::large), Answer::ok);
  }
  void expect_whole(const std::string& fast, const std::string& large) const {
    HotStore store = open_store(options(fast, large));
    EXPECT_EQ(store.range(store.schema().everything()).size(), 2u);
  }

  TempDir directory;
};

TEST_F(Folders, AStoreIsNotTakenForTheLevelTwoOfAnother) {
  fill("a", "a2");
  fill("b", "b2");
  for (const char* wrong : {"a", "a2"}) {
    EXPECT_THROW(open_store(options("c", wrong)), Refusal);
    EXPECT_THROW(open_store(options("b", wrong)), Refusal);
  }
  EXPECT_FALSE(fs::exists(directory.path("c"))) << "a refusal left something behind";
  EXPECT_THROW(open_store(options("a2", "")), Refusal) << "level 2 was opened as a store";
  expect_whole("a", "a2");
  expect_whole("b", "b2");
}

TEST_F(Folders, AStoreKeepsToTheLevelTwoThatItHas) {
  fill("a", "a2");
  EXPECT_THROW(open_store(options("a", "other")), Refusal);
  EXPECT_FALSE(fs::exists(directory.path("other")));
  expect_whole("a", "a2");
}

TEST_F(Folders, TheSameFolderByWhateverNameIsNotTwoLevels) {
  fill("a", "a2");
  fs::create_directory_symlink(directory.path("a"), directory.path("link"));
  for (const char* same : {"a", "./a", "a/.", "a/../a", "link"})
    EXPECT_THROW(open_store(options("a", same)), Refusal) << same;
  for (const char* inside : {"a/x", "link/x"})
    EXPECT_THROW(open_store(options("a", inside)), Refusal) << inside;
  EXPECT_FALSE(fs::exists(directory.path("a/x")));
  fs::create_directory(directory.path("outer"));
  EXPECT_THROW(open_store(options("outer/inner", "outer")), Refusal);
  expect_whole("a", "a2");
}

TEST_F(Folders, WhatHoldsSomethingElseIsRefusedAndLeft) {
  fs::create_directory(directory.path("full"));
  std::ofstream(directory.path("full/precious")) << "data";
  fs::create_directory(directory.path("old"));
  std::ofstream(directory.path("old/data.mdb")) << "a database";
  for (const char* foreign : {"full", "old"}) {
    EXPECT_THROW(open_store(options(foreign, "")), Refusal) << foreign;
    EXPECT_THROW(open_store(options("new", foreign)), Refusal) << foreign;
    EXPECT_EQ(std::distance(fs::directory_iterator(directory.path(foreign)), {}), 1) << foreign;
  }
}

TEST_F(Folders, AGarbledIdentityIsRefusedAndOneThatWasNeverFinishedIsNone) {
  fill("a", "a2");
  const fs::path marker = directory.path("a/hotstore.level");
  std::ofstream(marker, std::ios::trunc) << "hotstore format 2 level 1 store x own x\n";
  EXPECT_THROW(open_store(options("a", "")), Refusal);
  std::ofstream(marker, std::ios::trunc) << "something\n";
  EXPECT_THROW(open_store(options("a", "")), Refusal);
  std::ofstream(marker, std::ios::trunc) << "hotsto";
  EXPECT_THROW(open_store(options("a", "")), Refusal) << "there is a database beside it";
  fs::create_directory(directory.path("killed"));
  std::ofstream(directory.path("killed/hotstore.level")) << "hotsto";
  EXPECT_NO_THROW(open_store(options("killed", "")));
}

TEST_F(Folders, AnIdentityThatIsALinkIsNotFollowed) {
  fs::create_directory(directory.path("a"));
  fs::create_symlink(directory.path("victim"), directory.path("a/hotstore.level"));
  EXPECT_THROW(open_store(options("a", "")), Refusal);
  EXPECT_FALSE(fs::exists(directory.path("victim")));
}

TEST_F(Folders, LevelTwoIsSweptOnlyWhileNobodyElseUsesEitherLevel) {
  const KeySchema schema = testing::schema_of_paper();
  fill("a", "a2");
  const auto large = [&](const LevelFolder& fast) {
    return std::make_unique<LevelFolder>(directory.path("a2"), Access::change, &fast);
  };
  std::unique_ptr<LevelFolder> other;
  {
    LevelFolder fast(directory.path("a"));
    const auto values =
        lmdb_value_store(std::make_unique<LmdbEnv>(large(fast), testing::kCapacity, Durability::process));
    ASSERT_EQ(values->put(schema.encode({9, 1, 1}) + "12345678", "put, and its key not yet"), Answer::ok);
  }
  {
    LevelFolder fast(directory.path("a"));
    other = large(fast);
  }
  other->mark_not_synced();
  other->share();
  EXPECT_EQ(open_store(options("a", "a2")).sweep(), 1u) << "opening swept what another process has just put";
}

// Effects of a missing page, an impossible page and an endless loop on the process.
class Apart : public ::testing::Test {
 protected:
  daqwriter::ExitCode run(const Work& work) {
    return run_apart(stop, work, [&](const Death& death) {
      buried = death;
      return daqwriter::ExitCode::damaged;
    });
  }
  std::atomic<int> stop{0};
  Death buried;
};

TEST_F(Apart, WorkGivesItsExitStatusAndItsErrorsAreReported) {
  EXPECT_EQ(run([](Watch&) { return daqwriter::ExitCode::interrupted; }), daqwriter::ExitCode::interrupted);
  EXPECT_EQ(run([](Watch&) -> daqwriter::ExitCode { throw Refusal("no"); }), daqwriter::ExitCode::refused);
  EXPECT_EQ(run([](Watch&) -> daqwriter::ExitCode { throw Damage("no"); }), daqwriter::ExitCode::failed);
  EXPECT_EQ(buried.cause, "");
}

TEST_F(Apart, ADeathByASignalHasAName) {
  for (const auto& [number, name] :
       {std::pair{SIGBUS, "SIGBUS"}, {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}}) {
    const auto die = [number = number](Watch&) {
      signal(number, SIG_DFL);
      raise(number);
      return daqwriter::ExitCode::complete;
    };
    EXPECT_EQ(run(die), daqwriter::ExitCode::damaged);
    EXPECT_NE(buried.cause.find(name), std::string::npos) << buried.cause;
  }
}

TEST_F(Apart, WorkThatGoesRoundInCirclesEnds) {
  const auto circle = [](Watch& watch) {
    watch.allow(0.2);
    for (;;) pause();
    return daqwriter::ExitCode::complete;
  };
  EXPECT_EQ(run(circle), daqwriter::ExitCode::damaged);
  EXPECT_FALSE(buried.interrupted);
}

TEST_F(Apart, WorkThatDoesNotHearTheSignalEndsWithinFiveSeconds) {
  stop = SIGTERM;
  const std::int64_t started = daqwriter::monotonic_ns();
  const auto deaf = [](Watch&) {
    for (;;) pause();
    return daqwriter::ExitCode::complete;
  };
  EXPECT_EQ(run(deaf), daqwriter::ExitCode::damaged);
  EXPECT_TRUE(buried.interrupted);
  EXPECT_LT(daqwriter::seconds(daqwriter::monotonic_ns() - started), 60);
}

TEST_F(Folders, AReaderThatWasKilledDoesNotKeepTheStoreFull) {
  const auto env = open_env(directory.path("store"), 4 << 20);
  env->folder().share();
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t reader = fork();
  if (reader == 0) {
    const auto own = open_env(directory.path("store"), 4 << 20);
    own->read([&](MDB_txn* txn) {
      Cursor cursor(txn, own->table());
      cursor.first();
      if (write(ready[1], "r", 1) == 1) pause();
      return 0;
    });
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(reader, SIGKILL);
  waitpid(reader, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  const Bytes value(10'000, 'x');
  for (int turn = 0; turn < 2'000; ++turn) {
    const Bytes key = "d" + std::to_string(turn % 7);
    ASSERT_NO_THROW(env->write([&](MDB_txn* txn) {
      check_lmdb(put_record(txn, env->table(), key, {}, value), "mdb_put");
      env->leave_room(txn);
    })) << "turn "
        << turn;
  }
}

TEST_F(Folders, WhatIsNotSynchronisedIsMarkedUntilItIs) {
  const fs::path mark = directory.path("a/hotstore.not-synced");
  {
    HotStore store = open_store(options("a", ""));
    EXPECT_TRUE(fs::exists(mark));
  }
  EXPECT_FALSE(fs::exists(mark));
  StoreOptions durable = options("a", "");
  durable.durability = "system";
  HotStore store = open_store(durable);
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(Folders, TheMarkStaysWhileAnotherProcessUsesTheStore) {
  auto first = std::make_unique<LevelFolder>(directory.path("a"));
  first->keep();
  first->mark_not_synced();
  first->share();
  LevelFolder second(directory.path("a"));
  first->clear_not_synced();
  EXPECT_TRUE(fs::exists(directory.path("a/hotstore.not-synced")));
  first.reset();
  second.clear_not_synced();
  EXPECT_FALSE(fs::exists(directory.path("a/hotstore.not-synced")));
}

TEST_F(Folders, OneStoreHasOneDurabilityForAllWhoHaveItOpen) {
  StoreOptions durable = options("a", "");
  durable.durability = "system";
  {
    HotStore store = open_store(options("a", ""));
    EXPECT_THROW(open_store(durable), Refusal);
    EXPECT_NO_THROW(open_store(options("a", "")));
  }
  {
    HotStore store = open_store(durable);
    EXPECT_THROW(open_store(options("a", "")), Refusal);
    EXPECT_NO_THROW(open_store(durable));
  }
  // A process that was killed leaves the mark of its mode; whoever is alone makes its work durable.
  const std::string mark = directory.path("a/hotstore.not-synced");
  std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ofstream(mark).rdbuf();
  HotStore store = open_store(durable);
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(Folders, AfterACrashOfTheMachineAStoreThatWasNotSynchronisedIsReadOnly) {
  fill("a", "a2");
  std::ofstream(directory.path("a/hotstore.not-synced")) << "00000000-0000-4000-8000-000000000000\n";
  EXPECT_THROW(open_store(options("a", "a2")), Refusal);
  HotStore store = open_store(options("a", "a2"), Access::read);
  EXPECT_TRUE(store.lost_by_crash());
  EXPECT_EQ(store.range(store.schema().everything()).size(), 2u);
  EXPECT_TRUE(fs::exists(directory.path("a/hotstore.not-synced"))) << "reading took the mark away";
}

}  // namespace
}  // namespace hotstore
