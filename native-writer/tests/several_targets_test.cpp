// Several targets in one run: each record is whole, the sums are right, nothing is written to any of them
// when one is refused, and one that fails ends the others properly.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <zlib.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "base/worker_thread.h"
#include "record/minidaq_search.h"
#include "support.h"
#include "target/target_set.h"
#include "write/synthetic.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;
using testing::LoopDevice;
using testing::run_daqwriter;
using testing::TempDir;
using Arguments = std::vector<std::string>;

void expect_said(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "not '" << part << "' but: " << text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

// ------------------------------------------------------------------------------------------------ names

TEST(SplitTargets, SeparatesAtCommasAndKeepsEscapedOnes) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(split_targets({"a"}), Names({"a"}));
  EXPECT_EQ(split_targets({"a,b", "c"}), Names({"a", "b", "c"}));
  EXPECT_EQ(split_targets({R"(a\,b,c)"}), Names({"a,b", "c"}));
  EXPECT_EQ(split_targets({R"(/dev/disk/by-label/x\x20y)"}), Names({R"(/dev/disk/by-label/x\x20y)"}));
  EXPECT_EQ(split_targets({R"(a\)", "b"}), Names({R"(a\)", "b"}));
  EXPECT_EQ(split_targets({""}), Names({""}));  // what it always was: no target
  EXPECT_EQ(split_targets({targets_text({"a,b", "c"})}), Names({"a,b", "c"}));
  EXPECT_EQ(targets_text({"a,b"}), "a,b");
}

TEST(SplitTargets, RefusesEmptyNames) {
  for (const char* text : {"a,,b", "a,", ",a", ","}) EXPECT_THROW(split_targets({text}), Refusal) << text;
  EXPECT_THROW(split_targets({"a", ""}), Refusal);
}

TEST(SplitTargets, RefusesACommaThatMayBelongToAName) {
  const TempDir directory;
  fs::create_directory(directory.path("x,y"));
  testing::write_text(directory.path("p,q"), "somebody's");
  fs::create_symlink("nowhere", directory.path("l,k"));
  for (const char* name : {"x,y/new", "p,q", "l,k"}) {
    EXPECT_THROW(split_targets({directory.path(name)}), Refusal) << name;
    EXPECT_THROW(split_targets({"first," + directory.path(name)}), Refusal) << name;
  }
  EXPECT_EQ(split_targets({directory.path(R"(x\,y/new)")}).front(), directory.path("x,y/new"));
}

// ------------------------------------------------------------------------------------------------ records

class SeveralTargets : public ::testing::Test {
 protected:
  MiniDaqOptions several(std::size_t count, std::uint32_t applications = 1) const {
    MiniDaqOptions options = testing::small_record(name(0));
    for (std::size_t i = 1; i < count; ++i) options.further_targets.push_back(name(i));
    options.applications = applications;
    options.ring_bytes = 8 << 20;  // each holds all that its link emits: a busy disk loses nothing
    return options;
  }
  std::string name(std::size_t i) const { return directory.path("t" + std::to_string(i)); }
  void expect_refused(const MiniDaqOptions& options, const std::string& part) const {
    try {
      plan_minidaq(options);
      ADD_FAILURE() << part << " was not refused";
    } catch (const Refusal& refusal) {
      expect_said(refusal.what(), part);
    }
  }

  TempDir directory;
};

TEST_F(SeveralTargets, EachHasItsApplicationsAndTheSumsAreTheirs) {
  MiniDaqOptions options = several(3, 2);
  options.json_path = directory.path("json");
  const MiniDaqPlan plan = plan_minidaq(options);
  const std::atomic<int> never{0};
  const MiniDaqResult result = run_minidaq(options, plan, testing::aio_engine(), never);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  ASSERT_EQ(result.applications.size(), 6u);
  ASSERT_EQ(result.targets.size(), 3u);
  EXPECT_EQ(result.stored, 6u * 3000);
  std::uint64_t stored = 0;
  std::uint64_t needed = 0;
  std::set<std::string> ids;
  for (const TargetResult& one : result.targets) {
    EXPECT_EQ(one.stored, 2u * 3000);
    EXPECT_EQ(one.latency_ns.count(), 2u * 3000);
    EXPECT_LE(one.total_ns, result.total_ns);
    EXPECT_GE(one.total_ns, 500'000'000);
    EXPECT_TRUE(one.joint_buffer.exact);
    EXPECT_LE(one.joint_buffer.needed_bytes, one.service_curve.needed_bytes());
    EXPECT_LE(one.joint_buffer.needed_bytes, result.joint_buffer.needed_bytes);
    stored += one.payload_bytes;
    needed += one.joint_buffer.needed_bytes;
  }
  EXPECT_EQ(stored, result.payload_bytes);
  EXPECT_TRUE(result.joint_buffer.exact);
  EXPECT_GT(result.joint_buffer.needed_bytes, 0u);
  EXPECT_LE(result.joint_buffer.needed_bytes, needed);
  for (std::size_t target = 0; target < 3; ++target) {
    for (const char* record : {".0", ".1"}) {
      const testing::Verified verified = testing::verify(directory, name(target) + record);
      EXPECT_EQ(verified.exit_code, 0);
      EXPECT_EQ(verified.count("present"), 3000u);
      ids.insert(verified.json["record_id"]);
    }
    EXPECT_FALSE(fs::exists(name(target)));
  }
  EXPECT_EQ(ids.size(), 6u);

  const auto json = minidaq_json(options, plan, result);
  EXPECT_EQ(json["parameters"]["target"], joined({name(0), name(1), name(2)}));
  EXPECT_EQ(json["parameters"]["applications"], 2);
  EXPECT_EQ(json["parameters"]["targets"], 3);
  EXPECT_DOUBLE_EQ(json["parameters"]["offered_bytes_per_s"], 6.0 * 3 * 2000 * 5568);
  ASSERT_EQ(json["targets"].size(), 3u);
  EXPECT_EQ(json["targets"][1]["target"], name(1));
  EXPECT_EQ(json["targets"][1]["stored_bytes"], 2 * 3000 * 5568);
  EXPECT_EQ(json["transient_buffer"]["joint"]["kind"], "exact");
}

TEST_F(SeveralTargets, OneTargetIsOneOfThem) {
  const MiniDaqOptions options = several(1);
  const MiniDaqPlan plan = plan_minidaq(options);
  const std::atomic<int> never{0};
  const MiniDaqResult result = run_minidaq(options, plan, testing::aio_engine(), never);
  const auto json = minidaq_json(options, plan, result);
  ASSERT_EQ(json["targets"].size(), 1u);
  EXPECT_EQ(json["targets"][0]["stored_bytes_per_s"], json["stored_bytes_per_s"]);
  EXPECT_EQ(json["transient_buffer"]["joint"]["needed_bytes"], json["transient_buffer"]["needed_bytes"]);
}

TEST_F(SeveralTargets, TwentyFourStandTogether) {
  MiniDaqOptions options = several(24);
  options.ring_bytes = 3 << 20;  // holds all 400 superchunks of its link
  options.superchunk_rate_hz = 200;
  options.duration_s = 2;  // a busy machine may bring some of them late
  options.block_bytes = 64 << 10;
  const MiniDaqResult result = testing::record(options);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.targets.size(), 24u);
  EXPECT_GT(result.offered, 0u);
  for (std::size_t i = 0; i < 24; ++i) {
    const testing::Verified verified = testing::verify(directory, name(i));
    EXPECT_EQ(verified.exit_code, 0) << name(i);
    EXPECT_EQ(verified.count("present"), result.targets[i].stored);
    EXPECT_EQ(result.targets[i].stored, result.targets[i].offered);
  }
}

TEST_F(SeveralTargets, OfMoreThan256ApplicationsEachHasAnIdOfItsOwn) {
  MiniDaqOptions options = several(5, 64);
  options.record_id = parse_record_id("000000000000000000000000000000fe");
  options.links = 1;
  options.ring_bytes = 64 << 10;
  options.block_bytes = 4096;
  options.io_depth = 1;
  options.superchunk_rate_hz = 20;
  options.duration_s = 0.1;
  options.null_sink = true;
  MiniDaqPlan plan = plan_minidaq(options);
  const std::atomic<int> never{0};
  const MiniDaqResult result = run_minidaq(options, plan, engine_factory(Engine::null), never);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  std::set<RecordId> ids;
  for (const ApplicationResult& one : result.applications) ids.insert(one.record_id);
  EXPECT_EQ(ids.size(), 320u);
}

TEST_F(SeveralTargets, TriggeredRequestsHaveABoundForTheJointBuffer) {
  MiniDaqOptions options = several(2);
  options.request_bytes = 100 << 10;
  options.trigger_rate_hz = 40;
  const MiniDaqResult result = testing::record(options);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_FALSE(result.joint_buffer.exact);
  for (const TargetResult& one : result.targets) {
    EXPECT_TRUE(one.joint_buffer.exact);  // one application: its own curve
    EXPECT_LE(one.joint_buffer.needed_bytes, result.joint_buffer.needed_bytes);
  }
}

TEST_F(SeveralTargets, WhatAllTakeTogetherIsRefusedWithTheArithmetic) {
  MiniDaqOptions options = several(3, 2);
  const std::uint64_t one = 3 * options.ring_bytes + 8 * options.block_bytes;
  options.max_buffer_bytes = 6 * one - 1;
  expect_refused(options, "take " + std::to_string(6 * one) +
                              " B (3 targets x 2 applications x (3 x 8MiB + 8 x 256KiB))");
  options.max_buffer_bytes = 6 * one;
  EXPECT_EQ(plan_minidaq(options).buffer_bytes, 6 * one);
  options.max_buffer_bytes = 0;
  // Fits for one target, and not for three.
  std::ifstream meminfo("/proc/meminfo");
  std::uint64_t kib = 0;
  for (std::string word; meminfo >> word;) {
    if (word == "MemAvailable:" && meminfo >> kib) break;
  }
  options.applications = 1;
  options.ring_bytes = kib * 1024 / 3 / 3 * 2;
  expect_refused(options, "3 targets x 1 applications x (3 x ");
  expect_refused(options, "fewer targets");
  MiniDaqOptions alone = options;
  alone.further_targets.clear();
  EXPECT_NO_THROW(plan_minidaq(alone));
}

TEST_F(SeveralTargets, FilesOfOneFileSystemShareItsSpace) {
  MiniDaqOptions options = several(1);
  const std::uint64_t room = plan_minidaq(options).target().free_bytes;
  options.superchunk_rate_hz = 0.7 * static_cast<double>(room) / (3 * 5568 * options.duration_s);
  EXPECT_NO_THROW(plan_minidaq(options));
  options.further_targets = {name(1)};
  expect_refused(options, "for each of 2 applications");
}

TEST_F(SeveralTargets, TheSameFileTwiceIsRefusedHoweverItIsSpelt) {
  fs::create_directories(directory.path("d/e"));
  fs::create_directory_symlink(directory.path("d"), directory.path("link"));
  fs::create_directory_symlink(directory.path("d/e"), directory.path("deep"));
  const std::string file = directory.path("d/f");
  for (const std::string& other : {file, directory.path("link/f"), directory.path("d/./f"),
                                   directory.path("deep/../f"), fs::relative(file).string()}) {
    MiniDaqOptions options = testing::small_record(file);
    options.further_targets = {other};
    expect_refused(options, "is the same file as --target " + file);
  }
  // Where a lexical look would see the same name, and the kernel does not.
  MiniDaqOptions apart = testing::small_record(directory.path("f"));
  apart.further_targets = {directory.path("deep/../f")};
  EXPECT_NO_THROW(plan_minidaq(apart));
}

TEST_F(SeveralTargets, ARecordOfAnotherTargetIsRefused) {
  for (const bool reversed : {false, true}) {
    MiniDaqOptions options = several(1, 2);
    options.further_targets = {name(0) + ".1"};
    if (reversed) std::swap(options.target, options.further_targets.front());
    expect_refused(options, ".1, a record of --target " + name(0));
    options.applications = 1;  // then the second is no record of the first
    EXPECT_NO_THROW(plan_minidaq(options));
  }
}

// Fails its sixth request after every other engine has completed as many, however slow the machine.
class FailingLast : public testing::MeddlingEngine {
 public:
  using Counts = std::array<std::atomic<std::size_t>, 3>;
  FailingLast(std::unique_ptr<IoEngine> inner, const Counts& completed, std::size_t index)
      : MeddlingEngine(std::move(inner), 0, 5, EIO), completed_(completed), index_(index) {}
  int reap(std::span<IoCompletion> out, unsigned min_count, std::int64_t timeout_ns) override {
    for (std::size_t i = 0; i < completed_.size(); ++i) {
      if (i != index_) testing::wait_for_count(completed_[i], 6);
    }
    return MeddlingEngine::reap(out, min_count, timeout_ns);
  }

 private:
  const Counts& completed_;
  std::size_t index_;
};

TEST_F(SeveralTargets, OneThatFailsIsNamedAndTheOthersCloseTheirRecords) {
  MiniDaqOptions options = several(3);
  std::atomic<std::size_t> made{0};
  FailingLast::Counts completed{};
  const MiniDaqResult result = testing::record(options, [&](unsigned depth) -> std::unique_ptr<IoEngine> {
    const std::size_t index = made++;
    auto inner = testing::aio_engine()(depth);
    if (index == 1) return std::make_unique<FailingLast>(std::move(inner), completed, index);
    return std::make_unique<testing::CountedEngine>(std::move(inner), completed[index]);
  });
  EXPECT_EQ(result.status, RunStatus::failed);
  expect_said(result.error, name(1));
  expect_said(result.error, "EIO");
  EXPECT_EQ(result.targets[1].status, RunStatus::failed);
  EXPECT_FALSE(result.joint_buffer.exact);
  for (const std::size_t i : {0u, 2u}) {
    EXPECT_EQ(result.targets[i].status, RunStatus::interrupted) << result.targets[i].error;
    const testing::Verified verified = testing::verify(directory, name(i));
    EXPECT_EQ(verified.json["complete_trailer"], true) << verified.json.dump(1);
    EXPECT_EQ(verified.count("present"), result.targets[i].stored);
    EXPECT_GT(result.targets[i].stored, 0u);
  }
  EXPECT_EQ(testing::verify(directory, name(1)).json["complete_trailer"], false);
}

TEST_F(SeveralTargets, NoHeaderIsWrittenBeforeEveryEngineIsThere) {
  MiniDaqOptions options = several(3);
  int made = 0;
  EXPECT_THROW(testing::record(options,
                               [&](unsigned depth) -> std::unique_ptr<IoEngine> {
                                 if (++made == 3) throw Refusal("no third engine");
                                 return testing::aio_engine()(depth);
                               }),
               Refusal);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(fs::exists(name(i)));
}

TEST_F(SeveralTargets, ASourceThatFailsAtOneTargetIsNoTrialStood) {
  MiniDaqResult result;
  result.targets.resize(24);
  for (TargetResult& one : result.targets) one.due = one.in_time = 1000;
  for (const TargetResult& one : result.targets) result.add(one);
  EXPECT_TRUE(make_trial(1, 1, result).stood);
  result.targets[7].in_time = 990;
  result.in_time -= 10;
  EXPECT_GT(result.achieved_fraction(), 0.999);
  EXPECT_FALSE(make_trial(1, 1, result).stood);
}

// ------------------------------------------------------------------------------------------------ the binary

const Arguments kSmall = {"--duration",  "0.3",  "--links",      "2",    "--superchunk-rate", "1000",
                          "--ring-size", "2MiB", "--block-size", "64KiB"};

Arguments minidaq(const std::string& targets, Arguments more = {}) {
  Arguments all = {"minidaq", "--target", targets};
  all.insert(all.end(), kSmall.begin(), kSmall.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(SeveralTargets, OneRefusedAmongThreeLeavesAllAsTheyWere) {
  testing::write_text(directory.path("old"), "somebody's data");
  fs::create_hard_link(directory.path("old"), directory.path("hard"));
  fs::create_symlink(directory.path("new"), directory.path("to-new"));
  const std::vector<Arguments> wrong = {
      {joined({name(0), name(1), directory.path("old")})},
      {joined({directory.path("old"), directory.path("hard")})},
      {joined({directory.path("new"), directory.path("to-new")})},  // a symbolic link to the other one
      {joined({name(0), name(1), name(0)})},
      {joined({name(0), directory.path("missing/file"), name(1)})},
      {joined({name(0), name(1)}) + "," + "," + name(2)},
      {joined({name(0), name(1)}), "--json", name(1)},
      {joined({name(0), name(1)}), "--line-protocol", name(0)},
      {joined({name(0), name(1)}), "--json", "/dev/null"},
      {joined({name(0), name(1)}), "--max-buffer", "1MiB"}};
  for (const char* command : {"minidaq", "write"}) {
    for (const Arguments& each : wrong) {
      const bool write = std::string(command) == "write";
      if (write && each.size() > 1 && each[1] == "--max-buffer") continue;
      Arguments arguments = {command, "--target"};
      arguments.insert(arguments.end(), each.begin(), each.end());
      if (write) arguments.insert(arguments.end(), {"--bytes", "1MiB", "--block-size", "64KiB"});
      if (!write) arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
      const auto result = run_daqwriter(arguments);
      EXPECT_EQ(result.exit_code, 2) << each.front() << ": " << result.error_text;
      for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(fs::exists(name(i))) << each.front();
      EXPECT_FALSE(fs::exists(directory.path("new")));
      std::ifstream old(directory.path("old"));
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(old), {}), "somebody's data");
    }
  }
}

TEST_F(SeveralTargets, TheOptionIsGivenAsAListOrSeveralTimesAndANameMayHaveAComma) {
  const std::string with_comma = directory.path("with,comma");
  const auto result = run_daqwriter(minidaq(name(0) + "," + directory.path(R"(with\,comma)"),
                                            {"--target", name(1), "--json", directory.path("json"),
                                             "--line-protocol", directory.path("lines"), "--tag", "run=7"}));
  ASSERT_EQ(result.exit_code, 0) << result.error_text;
  for (const std::string& each : {name(0), with_comma, name(1)})
    EXPECT_EQ(testing::verify(directory, each).exit_code, 0) << each;
  const auto json = testing::read_json(directory.path("json"));
  EXPECT_EQ(json["parameters"]["target"], name(0) + "," + directory.path(R"(with\,comma)") + "," + name(1));
  EXPECT_EQ(json["targets"][1]["target"], with_comma);

  // Each moment has one record for each target, and then their sum.
  std::ifstream lines(directory.path("lines"));
  std::size_t tagged = 0;
  std::size_t sums = 0;
  std::string last;
  for (std::string line; std::getline(lines, line); last = line)
    (line.find(",target=") != std::string::npos ? tagged : sums) += 1;
  EXPECT_EQ(tagged, 3 * sums);
  EXPECT_GT(sums, 0u);
  EXPECT_EQ(last.find(",target="), std::string::npos) << last;
  expect_said(last, "stored_bytes=" + std::to_string(json["bytes"]["payload"].get<std::uint64_t>()) + "i");

  const auto taken = run_daqwriter(
      minidaq(name(5) + "," + name(6), {"--line-protocol", directory.path("lines"), "--tag", "target=mine"}));
  EXPECT_EQ(taken.exit_code, 2);
  expect_said(taken.error_text, "--tag target=mine");
  const auto alone =
      run_daqwriter(minidaq(name(5), {"--line-protocol", directory.path("alone"), "--tag", "target=mine"}));
  EXPECT_EQ(alone.exit_code, 0) << alone.error_text;  // as before
}

TEST_F(SeveralTargets, AnInterruptionClosesAllRecordsInTime) {
  for (const char* command : {"minidaq", "write"}) {
    const bool write = std::string(command) == "write";
    const std::string json = directory.path(command), lines = json + ".lines";
    Arguments arguments = {command,           "--target", joined({name(0), name(1), name(2), name(3)}),
                           "--duration",      "40",       "--block-size",
                           "64KiB",           "--json",   json,
                           "--line-protocol", lines};
    if (write) {
      arguments.insert(arguments.end(), {"--condition", "overwrite", "--span", "4MiB", "--keep"});
    } else {
      arguments.insert(arguments.end(), {"--links", "2", "--superchunk-rate", "500", "--ring-size", "4MiB"});
    }
    std::int64_t asked_ns = 0;
    const auto result = run_daqwriter(arguments, [&](pid_t child) {
      testing::wait_for_lines(lines, 30);
      asked_ns = monotonic_ns();
      kill(child, SIGINT);
    });
    EXPECT_LT(monotonic_ns() - asked_ns, 20'000'000'000);  // of 40 s
    EXPECT_EQ(result.exit_code, 130) << result.error_text;
    const auto document = testing::read_json(json);
    EXPECT_EQ(document["status"], "interrupted");
    ASSERT_EQ(document["targets"].size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(document["targets"][i]["status"], "interrupted");
      if (write) {
        EXPECT_GT(document["targets"][i]["written_bytes"], 0);
      } else {
        const testing::Verified verified = testing::verify(directory, name(i));
        EXPECT_EQ(verified.json["complete_trailer"], true) << verified.json.dump(1);
        EXPECT_EQ(verified.count("present"), document["targets"][i]["superchunks"]["stored"]);
      }
      fs::remove(name(i));
    }
  }
}

TEST_F(SeveralTargets, ASearchAsksAllOfThemAtOnceAndLeavesNothing) {
  const auto result = run_daqwriter(minidaq(
      name(0) + "," + name(1), {"--search", "--json", directory.path("json"), "--search-resolution", "0.5"}));
  ASSERT_EQ(result.exit_code, 0) << result.error_text;
  const auto json = testing::read_json(directory.path("json"));
  EXPECT_EQ(json["targets"], nlohmann::json({name(0), name(1)}));
  EXPECT_DOUBLE_EQ(json["asked_bytes_per_s"], 2.0 * 2 * 1000 * 5568);
  EXPECT_FALSE(fs::exists(name(0)));
  EXPECT_FALSE(fs::exists(name(1)));
}

TEST_F(SeveralTargets, AFileThatMayNotGrowFailsAndIsNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = run_daqwriter(
      minidaq(name(0) + "," + name(1), {"--preallocate", "none", "--json", directory.path("json")}));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(result.exit_code, 1) << result.error_text;
  const auto json = testing::read_json(directory.path("json"));
  EXPECT_EQ(json["status"], "failed");
  expect_said(json["error"], directory.path("t"));
  for (const auto& one : json["targets"]) EXPECT_NE(one["status"], "complete");
}

// ------------------------------------------------------------------------------------------------ writes

class SeveralWrites : public SeveralTargets {
 protected:
  WriteOptions writes(std::size_t count) const {
    WriteOptions options;
    options.target = name(0);
    for (std::size_t i = 1; i < count; ++i) options.further_targets.push_back(name(i));
    options.block_bytes = 64 << 10;
    options.bytes = 4 << 20;
    options.threads = 2;
    options.keep = true;
    return options;
  }
  const std::atomic<int> never{0};
};

TEST_F(SeveralWrites, EachIsWrittenWholeAndTheSumsAreTheirs) {
  const WriteOptions options = writes(3);
  const WritePlan plan = plan_write(options);
  const WriteResult result = run_write(options, plan, testing::aio_engine(), never);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.ended_by, "bytes");
  EXPECT_EQ(result.bytes, 3u * (4 << 20));
  EXPECT_EQ(result.threads.size(), 6u);
  EXPECT_EQ(plan.buffer_bytes, 3u * 2 * 4 * (64 << 10));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(fs::file_size(name(i)), 4u << 20);
    EXPECT_EQ(result.targets[i].bytes, 4u << 20);
    EXPECT_EQ(result.targets[i].latency_ns.count(), 64u);
    for (std::uint64_t page = 0; page < 4 << 20; page += 4096) {
      std::uint64_t stamp = 0;
      std::memcpy(&stamp, testing::read_bytes(name(i), page, sizeof stamp).data(), sizeof stamp);
      ASSERT_EQ(stamp, page) << name(i);
    }
  }
  const auto json = write_result_json(options, plan, result);
  EXPECT_EQ(json["written_bytes"], 3 * (4 << 20));
  EXPECT_DOUBLE_EQ(json["passes"], 1.0);
  EXPECT_EQ(json["threads"].size(), 6u);
  EXPECT_EQ(json["targets"][2]["target"], name(2));
  EXPECT_EQ(json["targets"][2]["written_bytes"], 4 << 20);
}

TEST_F(SeveralWrites, OneThatFailsIsNamedAndEndsTheOthers) {
  WriteOptions options = writes(3);
  options.bytes = 0;
  options.duration_s = 30;
  options.overwrite = true;
  options.span_bytes = 4 << 20;
  options.threads = 1;
  int made = 0;
  const WriteResult result = run_write(
      options, plan_write(options),
      [&](unsigned depth) {
        const bool failing = made++ == 1;
        return std::make_unique<testing::MeddlingEngine>(testing::aio_engine()(depth), 0,
                                                         failing ? 20 : SIZE_MAX, EIO);
      },
      never);
  EXPECT_EQ(result.status, RunStatus::failed);
  EXPECT_EQ(result.ended_by, "error");
  expect_said(result.error, name(1));
  EXPECT_EQ(result.targets[1].status, RunStatus::failed);
  for (const std::size_t i : {0u, 2u}) {
    EXPECT_EQ(result.targets[i].status, RunStatus::interrupted);
    EXPECT_EQ(result.targets[i].error, "");
    EXPECT_LT(result.targets[i].write_ns, 20'000'000'000);
  }
}

TEST_F(SeveralWrites, TwentyFourAtOnce) {
  WriteOptions options = writes(24);
  options.bytes = 1 << 20;
  options.threads = 1;
  const WriteResult result = run_write(options, plan_write(options), testing::aio_engine(), never);
  ASSERT_EQ(result.status, RunStatus::complete) << result.error;
  EXPECT_EQ(result.bytes, 24u << 20);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(fs::file_size(name(i)), 1u << 20);
}

// ------------------------------------------------------------------------------------------------ drives

// Loop devices with serials that a udev database gives them, which this process and its children see. They
// lie in memory: what works does not wait for a busy disk.
class SeveralDrives : public SeveralTargets {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_LOOP_DEVICES();
    testing::make_mounts_private();
    ASSERT_EQ(mount("tmpfs", "/run", "tmpfs", 0, nullptr), 0) << errno_text(errno);
    fs::create_directory(memory);
    ASSERT_EQ(mount("tmpfs", memory.c_str(), "tmpfs", 0, nullptr), 0) << errno_text(errno);
    mounts.push_back(memory);
    for (const char* serial : {"L1", "L2", "L3"}) add(memory + "/backing-" + serial, serial);
  }
  void TearDown() override {
    for (const std::string& mnt : mounts) umount2(mnt.c_str(), MNT_DETACH);
  }
  // Returns where a new file system is mounted, on a drive of its own.
  std::string file_system(const std::string& name) {
    const std::string mnt = directory.path(name);
    const LoopDevice& drive = add(memory + "/" + name, name, 96 << 20);
    testing::run_tool("mkfs.ext4 -q -F -m 0 " + drive.path());
    fs::create_directory(mnt);
    EXPECT_EQ(mount(drive.path().c_str(), mnt.c_str(), "ext4", 0, nullptr), 0) << errno_text(errno);
    mounts.push_back(mnt);
    return mnt;
  }
  LoopDevice& add(const std::string& backing, const std::string& serial, std::uint64_t bytes = kBytes) {
    drives.push_back(std::make_unique<LoopDevice>(backing, bytes));
    name_drive(*drives.back(), serial);
    return *drives.back();
  }
  static void name_drive(const LoopDevice& drive, const std::string& serial) {
    testing::write_text("/run/udev/data/b" + drive.number().text(), "E:ID_SERIAL_SHORT=" + serial + "\n");
  }
  // Returns the crc32 of each drive's whole content: zlib's, since sanitizers compare bytes slowly.
  std::vector<unsigned long> contents() const {
    std::vector<unsigned long> all;
    for (const auto& drive : drives) {
      const auto held = testing::read_bytes(drive->path(), 0, kBytes);
      all.push_back(crc32_z(0, reinterpret_cast<const Bytef*>(held.data()), held.size()));
    }
    return all;
  }
  void expect_refused_and_untouched(const std::string& targets, const std::string& part) const {
    const auto before = contents();
    for (const char* command : {"minidaq", "write"}) {
      Arguments arguments = {command, "--target", targets};
      for (const char* serial : {"L1", "L2", "L3", "L4"})
        arguments.insert(arguments.end(), {"--allow-serial", serial, "--destroy", serial});
      if (std::string(command) == "write") {
        arguments.insert(arguments.end(), {"--bytes", "1MiB", "--block-size", "64KiB"});
      } else {
        arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
      }
      const auto result = run_daqwriter(arguments);
      EXPECT_EQ(result.exit_code, 2) << targets << ": " << result.error_text;
      expect_said(result.error_text, part);
    }
    EXPECT_EQ(before, contents()) << targets;
    EXPECT_FALSE(fs::exists(name(0)));
  }
  const std::string& path(std::size_t i) const { return drives[i]->path(); }

  static constexpr std::uint64_t kBytes = 24 << 20;
  std::vector<std::unique_ptr<LoopDevice>> drives;
  const std::string memory = directory.path("memory");
  std::vector<std::string> mounts;
};

TEST_F(SeveralDrives, DrivesAndAFileEachWithPartsForTheirApplications) {
  const auto result = run_daqwriter(minidaq(joined({path(0), name(0), path(1)}),
                                            {"--applications", "2", "--allow-serial", "L1", "--allow-serial",
                                             "L2", "--json", directory.path("json")}));
  ASSERT_EQ(result.exit_code, 0) << result.error_text;
  const auto json = testing::read_json(directory.path("json"));
  EXPECT_EQ(json["parameters"]["target_kind"], "mixed");
  EXPECT_EQ(json["targets"][2]["kind"], "raw-device");
  for (const auto& one : json["applications"]) {
    const testing::Verified verified = testing::verify(directory, one["target"], one["offset_bytes"]);
    EXPECT_EQ(verified.exit_code, 0) << one["target"];
    EXPECT_EQ(verified.json["record_id"], one["record_id"]);
  }
}

// Each trial finds the data of the one before. Afterwards they are somebody's, as any other.
TEST_F(SeveralDrives, ASearchOnAnEmptyDriveOverwritesItsOwnTrials) {
  const Arguments consent = {"--allow-serial", "L1", "--search", "--search-resolution", "0.5"};
  const auto searched = run_daqwriter(minidaq(path(0), consent));
  EXPECT_EQ(searched.exit_code, 0) << searched.error_text;
  const auto again = run_daqwriter(minidaq(path(0), consent));
  EXPECT_EQ(again.exit_code, 2);
  expect_said(again.error_text, "is not empty");
}

TEST_F(SeveralDrives, EveryOnePassesTheInterlockByItself) {
  expect_refused_and_untouched(joined({path(0), path(1), add(directory.path("b4"), "L5").path()}),
                               "is another drive than");
  const auto before = contents();
  const auto one_allowed = run_daqwriter(minidaq(joined({path(0), path(1)}), {"--allow-serial", "L1"}));
  EXPECT_EQ(one_allowed.exit_code, 2);
  expect_said(one_allowed.error_text, path(1));
  EXPECT_EQ(before, contents());
}

TEST_F(SeveralDrives, TheSameDriveTwiceIsRefused) {
  fs::create_symlink(path(0), directory.path("by-id"));
  const std::string node = directory.path("node");
  ASSERT_EQ(
      mknod(node.c_str(), S_IFBLK | 0600, makedev(drives[0]->number().major, drives[0]->number().minor)), 0);
  expect_refused_and_untouched(joined({path(0), path(1), path(0)}), "shows the data of --target " + path(0));
  expect_refused_and_untouched(joined({path(0), directory.path("by-id")}), "shows the data of");
  expect_refused_and_untouched(joined({node, path(0)}), "shows the data of --target " + node);
}

TEST_F(SeveralDrives, ALoopOverTheSameFileOrOverAnotherTargetIsRefused) {
  const std::string twin = add(memory + "/backing-L1", "L4").path();
  expect_refused_and_untouched(joined({path(0), twin}), "shows the data of --target " + path(0));
  expect_refused_and_untouched(joined({twin, name(0), path(0)}), "shows the data of --target " + twin);
  // The file below a target is not a new file, by any of its names.
  fs::create_hard_link(memory + "/backing-L2", memory + "/hard");
  for (const std::string backing : {"backing-L2", "hard"}) {
    expect_refused_and_untouched(joined({path(1), memory + "/" + backing}), "never overwritten");
    expect_refused_and_untouched(joined({memory + "/" + backing, path(1)}), "never overwritten");
  }
  const LoopDevice above(path(2), kBytes);
  name_drive(above, "L4");
  expect_refused_and_untouched(joined({above.path(), path(2)}), "shows the data of --target " + above.path());
  expect_refused_and_untouched(joined({path(2), above.path()}), "in use by " + above.name());
}

TEST_F(SeveralDrives, AFileOnADriveThatIsATargetTooIsRefused) {
  testing::run_tool("mkfs.ext4 -q -F " + path(0));
  const std::string mnt = directory.path("mnt");
  fs::create_directory(mnt);
  ASSERT_EQ(mount(path(0).c_str(), mnt.c_str(), "ext4", 0, nullptr), 0) << errno_text(errno);
  for (const std::string& targets : {joined({mnt + "/f", path(0)}), joined({path(0), mnt + "/f"})}) {
    const auto result = run_daqwriter(minidaq(targets, {"--allow-serial", "L1", "--destroy", "L1"}));
    EXPECT_EQ(result.exit_code, 2);
    expect_said(result.error_text, "mounted: " + path(0));
    EXPECT_FALSE(fs::exists(mnt + "/f"));
  }
  umount(mnt.c_str());
}

TEST_F(SeveralDrives, APartitionBesideItsDriveIsRefused) {
  std::vector<std::byte> sector(512);
  const std::array<std::uint8_t, 12> entry = {0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x20, 0, 0};
  std::memcpy(sector.data() + 450, entry.data(), entry.size());
  sector[510] = std::byte{0x55};
  sector[511] = std::byte{0xaa};
  testing::write_bytes(path(0), 0, sector);
  testing::run_tool("partx -u " + path(0));
  expect_refused_and_untouched(joined({path(0), path(0) + "p1"}), "shows the data of --target " + path(0));
  expect_refused_and_untouched(joined({path(0) + "p1", path(0)}), "is a partition");
}

TEST_F(SeveralDrives, AFullFileSystemIsNamedAndTheOthersCloseTheirRecords) {
  const std::string mnt = directory.path("mnt"), full = mnt + "/record", json = directory.path("json");
  testing::run_tool("mkfs.ext4 -q -F -m 0 " + path(0));
  fs::create_directory(mnt);
  ASSERT_EQ(mount(path(0).c_str(), mnt.c_str(), "ext4", 0, nullptr), 0) << errno_text(errno);
  const std::string lines = directory.path("lines");
  const auto result = run_daqwriter(
      {"minidaq", "--target", joined({name(0), full, name(1)}), "--duration", "2.5", "--links", "1",
       "--superchunk-rate", "1000", "--ring-size", "4MiB", "--block-size", "64KiB", "--preallocate", "none",
       "--json", json, "--line-protocol", lines},
      [&](pid_t) {
        testing::wait_for_lines(lines, 12);
        std::ofstream other(mnt + "/other");
        const std::string megabyte(1 << 20, 'x');
        while (other.write(megabyte.data(), static_cast<std::streamsize>(megabyte.size())).flush()) {
        }
      });
  umount2(mnt.c_str(), MNT_DETACH);
  EXPECT_EQ(result.exit_code, 1) << result.error_text;
  const auto document = testing::read_json(json);
  expect_said(document["error"], full);
  expect_said(document["error"], "ENOSPC");
  for (const std::size_t i : {0u, 2u}) {
    EXPECT_EQ(document["targets"][i]["status"], "interrupted");
    const testing::Verified verified = testing::verify(directory, document["targets"][i]["target"]);
    EXPECT_EQ(verified.json["complete_trailer"], true) << verified.json.dump(1);
  }
}

// The file system below one drive is frozen: it takes requests and does not answer.
TEST_F(SeveralDrives, OneThatDoesNotAnswerDoesNotKeepTheOthersFromClosing) {
  const std::string mnt = file_system("mnt"), file = file_system("other") + "/file";
  const int held = open(mnt.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const LoopDevice& frozen = add(mnt + "/image", "L6", 64 << 20);
  for (const char* command : {"minidaq", "write"}) {
    const bool write = std::string(command) == "write";
    const std::string json = directory.path(command), lines = json + ".lines";
    Arguments arguments = {command,
                           "--target",
                           joined({path(0), frozen.path(), file}),
                           "--duration",
                           "10",
                           "--block-size",
                           "64KiB",
                           "--allow-serial",
                           "L1",
                           "--allow-serial",
                           "L6",
                           "--destroy",
                           "L1",
                           "--destroy",
                           "L6",
                           "--json",
                           json,
                           "--line-protocol",
                           lines};
    const Arguments more = write
                               ? Arguments{"--condition", "overwrite", "--span", "4MiB"}
                               : Arguments{"--links", "1", "--superchunk-rate", "200", "--ring-size", "4MiB"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    bool said_in_time = false;
    const auto result = run_daqwriter(arguments, [&](pid_t child) {
      testing::wait_for_lines(lines, 20);
      EXPECT_EQ(ioctl(held, FIFREEZE, 0), 0) << errno_text(errno);
      usleep(300'000);
      kill(child, SIGINT);
      said_in_time =
          testing::wait_until([&] { return fs::exists(json); });  // while the file system stands still
      ioctl(held, FITHAW, 0);
    });
    EXPECT_EQ(result.exit_code, 130) << result.error_text;
    EXPECT_TRUE(said_in_time) << command;
    const auto document = testing::read_json(json);
    expect_said(document["error"], frozen.path());
    EXPECT_GT(document["targets"][1]["unanswered_bytes"], 0) << command;
    for (const std::size_t i : {0u, 2u}) {
      EXPECT_EQ(document["targets"][i]["unanswered_bytes"], 0) << command;
      EXPECT_EQ(document["targets"][i]["error"], nullptr) << command;
      if (write) continue;
      const testing::Verified verified = testing::verify(directory, document["targets"][i]["target"]);
      EXPECT_EQ(verified.json["complete_trailer"], true) << verified.json.dump(1);
    }
    fs::remove(file);
  }
  close(held);
  drives.pop_back();  // before the file system that it lies in
}

// File systems of two drives, in which nothing can be written while they are frozen: the kernel then holds
// whoever submits a write by libaio inside the call, and answers no write by io_uring.
struct Freeze {
  const char* engine;
  const char* command;
  bool both;
  int signal_number = 0;  // sent then
};

class FrozenFileSystems : public SeveralDrives, public ::testing::WithParamInterface<Freeze> {
 protected:
  void SetUp() override {
    SeveralDrives::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* which : {"m1", "m2"}) {
      const std::string mnt = file_system(which);
      held.push_back(open(mnt.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      targets.push_back(mnt + "/file");
    }
  }
  void TearDown() override {
    thaw();
    for (const int fd : held) close(fd);
    SeveralDrives::TearDown();
  }
  void freeze(std::size_t which) { EXPECT_EQ(ioctl(held[which], FIFREEZE, 0), 0) << errno_text(errno); }
  void thaw() const {
    for (const int fd : held) ioctl(fd, FITHAW, 0);
  }

  std::vector<std::string> targets;
  std::vector<int> held;
};

TEST_P(FrozenFileSystems, CostTheirTargetsOnly) {
  const bool write = std::string(GetParam().command) == "write";
  const std::string json = directory.path("json"), lines = directory.path("lines");
  Arguments arguments = {GetParam().command,
                         "--target",
                         joined(targets),
                         "--duration",
                         "600",
                         "--engine",
                         GetParam().engine,
                         "--block-size",
                         "64KiB",
                         "--stall-limit",
                         "5",
                         "--json",
                         json,
                         "--line-protocol",
                         lines};
  const Arguments more = write ? Arguments{"--condition", "overwrite", "--span", "4MiB"}
                               : Arguments{"--links", "1", "--superchunk-rate", "20", "--ring-size", "4MiB"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (GetParam().signal_number != 0) arguments[10] = "60";
  bool said_in_time = false;
  testing::ProcessResult result;
  // Until the second one is frozen, a busy machine may have answered all writes to it; the ring is full, and
  // no more are made.
  const auto both_held = [&json] {
    const auto told = testing::read_json(json)["targets"];
    return told[0]["unanswered_bytes"] > 0 && told[1]["unanswered_bytes"] > 0;
  };
  for (int tries = 0; tries < 5; ++tries) {
    for (const std::string& file : {json, lines, targets[0], targets[1]}) fs::remove(file);
    said_in_time = false;
    result = run_daqwriter(arguments, [&](pid_t child) {
      testing::wait_for_lines(lines, 12);
      freeze(1);
      if (GetParam().both) freeze(0);
      usleep(300'000);
      if (GetParam().signal_number != 0) kill(child, GetParam().signal_number);
      said_in_time =
          testing::wait_until([&] { return fs::exists(json); });  // while the file systems stand still
      thaw();
    });
    if (!said_in_time || !GetParam().both || both_held()) break;
  }
  const char* const status = GetParam().signal_number != 0 ? "interrupted" : "failed";
  EXPECT_EQ(result.exit_code, GetParam().signal_number != 0 ? 130 : 1) << result.error_text;
  ASSERT_TRUE(said_in_time) << result.error_text;
  const auto document = testing::read_json(json);
  EXPECT_EQ(document["status"], status);
  for (const std::size_t i : {0u, 1u}) {
    const auto& one = document["targets"][i];
    if (i == 1 || GetParam().both) {
      EXPECT_EQ(one["status"], status);
      EXPECT_GT(one["unanswered_bytes"], 0);
      expect_said(document["error"], targets[i] + ": ");
      continue;
    }
    EXPECT_EQ(one["status"], "interrupted");
    EXPECT_EQ(one["unanswered_bytes"], 0);
    if (GetParam().signal_number != 0) continue;  // a slow drive may not have closed it in time
    EXPECT_EQ(one["error"], nullptr);
    if (write) continue;
    const testing::Verified verified = testing::verify(directory, targets[i]);
    EXPECT_EQ(verified.json["trailer_status"], "interrupted") << verified.json.dump(1);
    EXPECT_EQ(verified.count("present"), one["superchunks"]["stored"]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Freeze, FrozenFileSystems,
    ::testing::Values(Freeze{"libaio", "minidaq", false}, Freeze{"libaio", "minidaq", true},
                      Freeze{"libaio", "write", false}, Freeze{"libaio", "write", true},
                      Freeze{"io_uring", "minidaq", false}, Freeze{"io_uring", "minidaq", true},
                      Freeze{"io_uring", "write", false}, Freeze{"io_uring", "write", true},
                      Freeze{"libaio", "minidaq", false, SIGINT}, Freeze{"libaio", "minidaq", true, SIGINT},
                      Freeze{"libaio", "write", true, SIGINT}),
    [](const auto& test) {
      return std::string(test.param.engine == std::string("libaio") ? "Libaio" : "Uring") +
             test.param.command + (test.param.both ? "Both" : "One") +
             (test.param.signal_number != 0 ? "Signalled" : "");
    });

// ------------------------------------------------------------------------------------------------ at once

TEST(RunAtOnce, EndsAllBeforeItThrowsWhatTheFirstThrew) {
  std::atomic<int> ended{0};
  try {
    run_at_once(4, [&](std::size_t i) {
      usleep(static_cast<useconds_t>(10'000 * (4 - i)));
      ++ended;
      if (i >= 2) throw Failure("number " + std::to_string(i));
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "number 2");
  }
  EXPECT_EQ(ended, 4);
  const auto here = std::this_thread::get_id();
  run_at_once(1, [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), here); });
}

}  // namespace
}  // namespace daqwriter
