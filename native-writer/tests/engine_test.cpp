// The asynchronous I/O interfaces against the real kernel: each transfers what it is given, no more than its
// capacity at once, and says what it could not get.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/block_reader.h"
#include "io/engines.h"
#include "io/uring_engine.h"
#include "support.h"

namespace daqwriter {
namespace {

using testing::TempDir;

constexpr std::size_t kPage = 4096;
constexpr std::int64_t kSecondNs = 1'000'000'000;

class EngineTest : public ::testing::TestWithParam<Engine> {
 protected:
  EngineTest() { std::memset(memory.data(), 0x5a, memory.size()); }
  ~EngineTest() override {
    engine.reset();
    close(fd);
  }
  iovec page(std::size_t number, std::size_t count = 1) const {
    return {memory.data() + number * kPage, count * kPage};
  }
  // Submits one request and returns its completion.
  IoCompletion transfer(IoDirection direction, std::span<const iovec> pieces, std::uint64_t offset) {
    const IoRequest request{fd, direction, pieces, offset, 77};
    EXPECT_EQ(engine->submit({&request, 1}), 1);
    IoCompletion done;
    EXPECT_EQ(engine->reap({&done, 1}, 1, 30 * kSecondNs), 1);
    return done;
  }

  TempDir directory;
  int fd = open(directory.path("file").c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  Memory memory{16 * kPage, std::nullopt};
  std::unique_ptr<IoEngine> engine = engine_factory(GetParam())(4);
};

TEST_P(EngineTest, WritesAndReadsSinglePiecesAndGatheredOnesInAndOutsideRegisteredMemory) {
  const iovec registered = page(0, 8);
  engine->register_memory({&registered, 1});
  for (std::size_t i = 0; i < 16; ++i) memory.data()[i * kPage] = static_cast<std::byte>(i);
  const std::vector<std::vector<iovec>> shapes = {
      {page(3)}, {page(12)}, {page(7, 2)}, {page(0), page(15), page(5)}};
  std::uint64_t offset = 0;
  for (const auto& pieces : shapes) {
    const IoCompletion written = transfer(IoDirection::write, pieces, offset);
    EXPECT_EQ(written.tag, 77u);
    EXPECT_EQ(written.result, static_cast<std::int64_t>(bytes_of(pieces)));
    for (const iovec& piece : pieces) {
      const auto* first = static_cast<const std::byte*>(piece.iov_base);
      EXPECT_EQ(testing::read_bytes(directory.path("file"), offset, piece.iov_len),
                std::vector<std::byte>(first, first + piece.iov_len));
      offset += piece.iov_len;
    }
  }
  const std::vector<iovec> single = {page(4)};
  const std::vector<iovec> gathered = {page(1), page(9)};
  EXPECT_EQ(transfer(IoDirection::read, single, 0).result, 4096);
  EXPECT_EQ(memory.data()[4 * kPage], std::byte{3});
  EXPECT_EQ(transfer(IoDirection::read, gathered, kPage).result, 8192);
  EXPECT_EQ(memory.data()[1 * kPage], std::byte{12});
  EXPECT_EQ(memory.data()[9 * kPage], std::byte{7});
}

TEST_P(EngineTest, TakesNoMoreThanItsCapacityAndTheRestLater) {
  const iovec piece = page(0);
  std::vector<IoRequest> requests;
  for (std::uint64_t i = 0; i < 6; ++i)
    requests.push_back({fd, IoDirection::write, {&piece, 1}, i * kPage, i});
  EXPECT_EQ(engine->submit(requests), 4);
  EXPECT_EQ(engine->submit(std::span(requests).subspan(4)), -EAGAIN);
  std::vector<IoCompletion> done(8);
  int count = 0;
  std::uint64_t tags = 0;
  const auto reap = [&] {
    const int some = engine->reap(done, 1, 30 * kSecondNs);
    ASSERT_GT(some, 0);
    for (int i = 0; i < some; ++i) tags |= 1u << done[static_cast<std::size_t>(i)].tag;
    count += some;
  };
  while (count < 4) reap();
  EXPECT_EQ(engine->submit(std::span(requests).subspan(4)), 2);
  while (count < 6) reap();
  EXPECT_EQ(tags, 0x3fu);
}

TEST_P(EngineTest, HandsBackErrorsWithTheirRequestAndGoesOn) {
  const std::vector<iovec> unaligned = {{memory.data() + 1, kPage}};
  const iovec piece = page(0);
  const IoRequest bad{fd, IoDirection::write, unaligned, 0, 5};
  IoCompletion done;
  int error = engine->submit({&bad, 1});  // either way of refusing is good
  if (error == 1) {
    ASSERT_EQ(engine->reap({&done, 1}, 1, 30 * kSecondNs), 1);
    EXPECT_EQ(done.tag, 5u);
    error = static_cast<int>(done.result);
  }
  EXPECT_EQ(error, -EINVAL);
  EXPECT_EQ(transfer(IoDirection::write, {&piece, 1}, 0).result, 4096);
  EXPECT_EQ(transfer(IoDirection::read, {&piece, 1}, 1 << 20).result, 0);  // behind the end of the file
}

TEST_P(EngineTest, AnEmptyReapReturnsNothingAfterItsTime) {
  std::vector<IoCompletion> done(4);
  EXPECT_EQ(engine->reap(done, 0, 0), 0);
  EXPECT_EQ(engine->reap(done, 1, 1'000'000), 0);
}

TEST_P(EngineTest, DestructionWaitsForWhatIsInFlight) {
  const iovec piece = page(0, 16);
  std::vector<IoRequest> requests;
  for (std::uint64_t i = 0; i < 4; ++i)
    requests.push_back({fd, IoDirection::write, {&piece, 1}, i * 16 * kPage, i});
  ASSERT_EQ(engine->submit(requests), 4);
  engine.reset();
  std::memset(memory.data(), 0, memory.size());  // must not reach the disk
  const auto disk = testing::read_bytes(directory.path("file"), 0, 64 * kPage);
  EXPECT_EQ(std::count(disk.begin(), disk.end(), std::byte{0x5a}), 64 * static_cast<long>(kPage));
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineTest, ::testing::ValuesIn(kEngines),
                         [](const auto& test) { return engine_name(test.param); });

TEST(UringEngineTest, SaysWhetherItsBuffersAreRegistered) {
  const Memory memory(kPage, std::nullopt);
  const iovec good{memory.data(), memory.size()};
  UringEngine engine(1);
  EXPECT_EQ(engine.note(), "buffers not registered");
  engine.register_memory({&good, 1});
  EXPECT_EQ(engine.note(), "registered buffers: 1");
}

TEST(UringEngineTest, SplitsWhatIsTooLargeForOneRegisteredBuffer) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to lock more than 1 GiB of memory";
  const std::size_t bytes = (std::size_t{1} << 30) + kPage;
  void* const region = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(region, MAP_FAILED);
  const iovec whole{region, bytes};
  UringEngine engine(1);
  engine.register_memory({&whole, 1});
  EXPECT_EQ(engine.note(), "registered buffers: 2");
  munmap(region, bytes);
}

// Capabilities belong to a thread, so that a thread can be a user who may lock next to nothing.
void limit_locked_memory(rlim_t bytes) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  ASSERT_EQ(syscall(SYS_capget, &header, sets), 0);
  sets[0].effective &= ~(1u << CAP_IPC_LOCK);
  ASSERT_EQ(syscall(SYS_capset, &header, sets), 0);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  limit.rlim_cur = bytes;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

TEST(UringEngineTest, GoesOnUnregisteredWhereLockingMemoryIsLimitedAndNamesTheRemedy) {
  std::string note;
  std::int64_t written = 0;
  bool file_in_use = false;
  const TempDir directory;
  std::thread([&] {
    limit_locked_memory(16 * kPage);
    const Memory memory(1 << 20, std::nullopt);
    const iovec piece{memory.data(), memory.size()};
    UringEngine engine(1);
    engine.register_memory({&piece, 1});
    note = engine.note();
    const int fd = open(directory.path("file").c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    engine.register_file(fd);
    for (const Feature& each : engine.features())
      file_in_use |= each.name == "registered file" && each.in_use;
    const IoRequest request{fd, IoDirection::write, {&piece, 1}, 0, 1};
    IoCompletion done;
    ASSERT_EQ(engine.submit({&request, 1}), 1);
    ASSERT_EQ(engine.reap({&done, 1}, 1, 30 * kSecondNs), 1);
    written = done.result;
    close(fd);
  }).join();
  EXPECT_NE(note.find("ENOMEM"), std::string::npos) << note;
  EXPECT_NE(note.find("RLIMIT_MEMLOCK"), std::string::npos) << note;
  EXPECT_EQ(written, 1 << 20);
  EXPECT_TRUE(file_in_use);
}

// Since Linux 6.14 the ring itself counts: without any memory to lock there is none.
TEST(UringEngineTest, WithoutAnyMemoryToLockItWorksUnregisteredOrNamesTheRemedy) {
  std::string said;
  std::thread([&] {
    limit_locked_memory(0);
    try {
      const Memory memory(1 << 20, std::nullopt);
      const iovec piece{memory.data(), memory.size()};
      UringEngine engine(1);
      engine.register_memory({&piece, 1});
      said = engine.note();
    } catch (const Failure& failure) {
      said = failure.what();
    }
  }).join();
  EXPECT_NE(said.find("RLIMIT_MEMLOCK"), std::string::npos) << said;
}

const Feature& feature(const std::vector<Feature>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Feature& f) { return f.name == name; });
  if (found == all.end()) throw std::runtime_error("no feature " + name);
  return *found;
}

// Writes pages through an engine, each a page of its own: each write is answered once, and is on the disk.
class UringFeatureTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kPages = 16;

  UringFeatureTest() {
    for (std::size_t i = 0; i < kPages; ++i)
      std::memset(memory.data() + i * kPage, static_cast<int>(i + 1), kPage);
  }
  ~UringFeatureTest() override { close(fd); }

  void name_both(UringEngine& engine) const {
    const iovec whole{memory.data(), memory.size()};
    engine.register_memory({&whole, 1});
    engine.register_file(fd);
  }
  std::vector<IoRequest> requests(std::size_t count) {
    std::vector<IoRequest> all;
    for (std::size_t i = 0; i < count; ++i) {
      pieces[i] = {memory.data() + i * kPage, kPage};
      all.push_back({fd, IoDirection::write, {&pieces[i], 1}, i * kPage, i});
    }
    return all;
  }
  // Reaps until `count` answers are there or nothing comes any more.
  std::map<std::uint64_t, std::vector<std::int64_t>> answers(IoEngine& engine, std::size_t count) {
    std::map<std::uint64_t, std::vector<std::int64_t>> results;
    std::vector<IoCompletion> done(kPages);
    std::size_t have = 0;
    for (const std::int64_t until = monotonic_ns() + 20 * kSecondNs;
         have < count && monotonic_ns() < until;) {
      const int some = engine.reap(done, 1, 100'000'000);
      EXPECT_GE(some, 0);
      for (int i = 0; i < some; ++i) {
        const IoCompletion& each = done[static_cast<std::size_t>(i)];
        results[each.tag].push_back(each.result);
      }
      have += static_cast<std::size_t>(std::max(some, 0));
    }
    EXPECT_EQ(engine.reap(done, 0, 0), 0);  // and no more
    return results;
  }
  void expect_written(const std::string& name, std::size_t count) const {
    const auto disk = testing::read_bytes(name, 0, count * kPage);
    for (std::size_t i = 0; i < count * kPage; ++i)
      ASSERT_EQ(disk[i], static_cast<std::byte>(i / kPage + 1)) << i;
  }
  void expect_works(UringEngine& engine, std::size_t count = 4) {
    const auto all = requests(count);
    std::size_t accepted = 0;
    while (accepted < count) {
      const int some = engine.submit(std::span(all).subspan(accepted));
      ASSERT_GT(some, 0);
      accepted += static_cast<std::size_t>(some);
    }
    const auto results = answers(engine, count);
    ASSERT_EQ(results.size(), count);
    for (const auto& [tag, each] : results) EXPECT_EQ(each, std::vector<std::int64_t>{kPage}) << tag;
    expect_written(path, count);
  }

  TempDir directory;
  std::string path = directory.path("file");
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  Memory memory{kPages * kPage, std::nullopt};
  std::array<iovec, kPages> pieces{};
};

TEST_F(UringFeatureTest, SaysOfEachFeatureWhetherItIsInUseAndWhyNot) {
  UringEngine engine(4);
  for (const Feature& each : engine.features()) EXPECT_EQ(each.in_use, each.reason.empty()) << each.name;
  EXPECT_FALSE(feature(engine.features(), "registered file").in_use);
  name_both(engine);
  expect_works(engine);
  EXPECT_TRUE(feature(engine.features(), "registered file").in_use);
  EXPECT_TRUE(feature(engine.features(), "registered buffers").in_use);
  EXPECT_EQ(feature(engine.features(), "polled completions").reason, "not a raw NVMe drive");
  EXPECT_TRUE(engine_factory(Engine::libaio)(1)->features().empty());
}

// An older kernel: it knows no flag, or not the newest one.
TEST_F(UringFeatureTest, WorksOnAKernelThatKnowsNoneOrOneOfTheFlags) {
  for (const unsigned unknown : {unsigned{IORING_SETUP_DEFER_TASKRUN},
                                 IORING_SETUP_DEFER_TASKRUN | unsigned{IORING_SETUP_SINGLE_ISSUER}}) {
    UringCalls calls;
    calls.setup = [=](unsigned entries, io_uring* ring, io_uring_params* params) {
      return (params->flags & unknown) != 0 ? -EINVAL : io_uring_queue_init_params(entries, ring, params);
    };
    UringEngine engine(4, calls);
    name_both(engine);
    EXPECT_NE(feature(engine.features(), "deferred task work").reason.find("EINVAL"), std::string::npos);
    EXPECT_EQ(feature(engine.features(), "single issuer").in_use, unknown == IORING_SETUP_DEFER_TASKRUN);
    EXPECT_TRUE(feature(engine.features(), "registered file").in_use);
    EXPECT_TRUE(feature(engine.features(), "registered buffers").in_use);
    expect_works(engine);
  }
}

TEST_F(UringFeatureTest, IsBuiltByOneThreadUsedByAnotherAndDestroyedByTheFirst) {
  UringEngine engine(4);
  name_both(engine);
  std::thread([&] { expect_works(engine); }).join();
}

TEST_F(UringFeatureTest, ARegisteredFileIsUsedForItsOwnRequestsOnly) {
  const std::string other_path = directory.path("other");
  const int other = open(other_path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  UringEngine engine(4);
  name_both(engine);
  auto all = requests(3);
  for (IoRequest& each : all) each.fd = other;
  ASSERT_EQ(engine.submit(all), 3);
  EXPECT_EQ(answers(engine, 3).size(), 3u);
  expect_written(other_path, 3);
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
  close(other);
}

// The kernel itself stops at a request that it cannot prepare: those behind it stay in the ring.
TEST_F(UringFeatureTest, WhatTheKernelDidNotTakeIsCountedAndSubmittedByTheNextCall) {
  UringEngine engine(8);
  name_both(engine);
  const std::vector<iovec> too_many(2000, iovec{memory.data(), kPage});
  auto all = requests(6);
  all[2].pieces = too_many;
  EXPECT_EQ(engine.submit(all), 6);  // all are the engine's now
  EXPECT_EQ(engine.unsubmitted(), (std::vector<std::uint64_t>{3, 4, 5}));
  const auto results = answers(engine, 6);
  EXPECT_TRUE(engine.unsubmitted().empty());
  ASSERT_EQ(results.size(), 6u);
  for (const auto& [tag, each] : results)
    EXPECT_EQ(each, (std::vector<std::int64_t>{tag == 2 ? -EINVAL : std::int64_t{kPage}})) << tag;
  expect_works(engine, 8);
}

TEST_F(UringFeatureTest, AKernelShortOfMemoryGetsEachRequestOnce) {
  int refusals = 5;
  UringCalls calls;
  calls.submit = [&](io_uring* ring) { return refusals-- > 0 ? -EAGAIN : io_uring_submit(ring); };
  calls.submit_and_wait = [&](io_uring* ring, io_uring_cqe** first, unsigned least, __kernel_timespec* time,
                              sigset_t* mask) {
    return refusals-- > 0 ? -EBUSY : io_uring_submit_and_wait_timeout(ring, first, least, time, mask);
  };
  UringEngine engine(4, calls);
  const auto all = requests(4);
  ASSERT_EQ(engine.submit(all), 4);
  EXPECT_EQ(engine.unsubmitted(), (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(engine.submit(all), -EAGAIN);  // there is no room for them a second time
  const auto results = answers(engine, 4);
  ASSERT_EQ(results.size(), 4u);
  for (const auto& [tag, each] : results) EXPECT_EQ(each.size(), 1u) << tag;
  EXPECT_LT(refusals, 0);
  expect_written(path, 4);
}

TEST_F(UringFeatureTest, WaitingForAKernelThatTakesNothingEndsInTime) {
  UringCalls calls;
  calls.submit = [](io_uring*) { return -EAGAIN; };
  calls.submit_and_wait = [](io_uring*, io_uring_cqe**, unsigned, __kernel_timespec*, sigset_t*) {
    return -EAGAIN;
  };
  UringEngine engine(4, calls);
  std::vector<IoCompletion> done(4);
  ASSERT_EQ(engine.accept(requests(4)), 4);
  const std::int64_t since = monotonic_ns();
  EXPECT_EQ(engine.reap(done, 1, 50'000'000), 0);
  EXPECT_LT(monotonic_ns() - since, 20 * kSecondNs);
  EXPECT_EQ(engine.unsubmitted().size(), 4u);
}  // and its destruction waits for nothing

TEST_F(UringFeatureTest, ABrokenRingIsAnErrorOfReapAfterWhatHadCompleted) {
  bool broken = false;
  UringCalls calls;
  calls.submit_and_wait = [&](io_uring* ring, io_uring_cqe** first, unsigned least, __kernel_timespec* time,
                              sigset_t* mask) {
    return broken ? -EBADF : io_uring_submit_and_wait_timeout(ring, first, least, time, mask);
  };
  calls.submit = [&](io_uring* ring) { return broken ? -EBADF : io_uring_submit(ring); };
  UringEngine engine(4, calls);
  const auto all = requests(3);
  std::vector<IoCompletion> done(4);
  ASSERT_EQ(engine.submit(std::span(all).first(2)), 2);
  ASSERT_EQ(engine.reap(std::span(done).first(1), 2, 30 * kSecondNs), 1);
  broken = true;
  ASSERT_EQ(engine.submit(std::span(all).subspan(2)), 1);
  int taken = 0;
  int last = 0;
  for (int i = 0; i < 2000 && (last = engine.reap(done, 3, 10'000'000)) >= 0; ++i) taken += last;
  EXPECT_EQ(last, -EBADF);
  EXPECT_LE(taken, 1);
  EXPECT_EQ(engine.unsubmitted(), std::vector<std::uint64_t>{2});
}

TEST_F(UringFeatureTest, AnInterruptedWaitLosesNothing) {
  struct sigaction before {};
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR2, &action, &before), 0);
  UringEngine engine(4);
  const pthread_t waiting = pthread_self();
  std::atomic<bool> end{false};
  std::thread interrupter([&] {
    while (!end) {
      pthread_kill(waiting, SIGUSR2);
      sleep_until_monotonic_ns(monotonic_ns() + 5'000'000);
    }
  });
  std::vector<IoCompletion> done(4);
  const std::int64_t since = monotonic_ns();
  EXPECT_EQ(engine.reap(done, 1, 30 * kSecondNs), 0);
  EXPECT_LT(monotonic_ns() - since, 20 * kSecondNs);
  for (int i = 0; i < 100; ++i) expect_works(engine);
  end = true;
  interrupter.join();
  sigaction(SIGUSR2, &before, nullptr);
}

TEST_F(UringFeatureTest, PollingThatTheDriveDoesNotDoIsLeftAndSaid) {
  UringCalls calls;
  calls.not_polled = [](int) { return ""; };  // as if the file were a drive with polling queues
  UringEngine engine(4, calls);
  name_both(engine);
  const Feature polling = feature(engine.features(), "polled completions");
  if (polling.in_use) GTEST_SKIP() << "the drive below this file really polls";
  EXPECT_NE(polling.reason.find("polled read"), std::string::npos) << polling.reason;
  expect_works(engine);
}

// A ring that is polled, on a file that need not be: the loop that stands in for the kernel's waiting.
TEST_F(UringFeatureTest, PolledCompletionsComeOnceAndWaitingEndsInTime) {
  ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
  UringCalls calls;
  calls.not_polled = [](int) { return ""; };
  calls.setup = [](unsigned entries, io_uring* ring, io_uring_params* params) {
    params->flags &= ~unsigned{IORING_SETUP_IOPOLL};
    return io_uring_queue_init_params(entries, ring, params);
  };
  UringEngine engine(4, calls);
  name_both(engine);
  EXPECT_TRUE(feature(engine.features(), "polled completions").in_use);
  EXPECT_TRUE(feature(engine.features(), "registered buffers").in_use);
  std::thread([&] {
    std::vector<IoCompletion> done(4);
    const std::int64_t since = monotonic_ns();
    EXPECT_EQ(engine.reap(done, 1, 50'000'000), 0);
    EXPECT_GE(monotonic_ns() - since, 50'000'000);
    expect_works(engine);
  }).join();
}

TEST_F(UringFeatureTest, ALoopDeviceIsNotPolled) {
  SKIP_WITHOUT_LOOP_DEVICES();
  const testing::LoopDevice loop(directory.path("backing"), 1 << 20);
  const int device = open(loop.path().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  {
    UringEngine engine(4);
    engine.register_file(device);
    EXPECT_EQ(feature(engine.features(), "polled completions").reason, "not a raw NVMe drive");
  }
  close(device);
}

// A filter that forbids one way of registering: it must not take the others away.
struct Forbidden {
  unsigned opcode;
  std::string feature;
  std::string others;
};

class ForbiddenRegistrationTest : public UringFeatureTest, public ::testing::WithParamInterface<Forbidden> {};

TEST_P(ForbiddenRegistrationTest, LeavesTheOtherFeatures) {
  std::thread([&] {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, args[1]))),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GetParam().opcode, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{6, filter};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    UringEngine engine(4);
    name_both(engine);
    expect_works(engine);
    EXPECT_FALSE(feature(engine.features(), GetParam().feature).in_use);
    EXPECT_NE(feature(engine.features(), GetParam().feature).reason.find("EPERM"), std::string::npos);
    EXPECT_TRUE(feature(engine.features(), GetParam().others).in_use);
  }).join();
}

INSTANTIATE_TEST_SUITE_P(
    Opcodes, ForbiddenRegistrationTest,
    ::testing::Values(Forbidden{IORING_REGISTER_FILES, "registered file", "registered buffers"},
                      Forbidden{IORING_REGISTER_BUFFERS, "registered buffers", "registered file"},
                      Forbidden{IORING_REGISTER_ENABLE_RINGS, "single issuer", "registered file"}),
    [](const auto& test) { return "opcode" + std::to_string(test.param.opcode); });

// Installs a seccomp filter as a container does; it holds for the thread that installs it.
class ForbiddenUringTest : public ::testing::TestWithParam<int> {};

TEST_P(ForbiddenUringTest, IsAFailureThatNamesTheRemedy) {
  std::string message;
  std::thread([&] {
    const auto refuse = SECCOMP_RET_ERRNO | static_cast<unsigned>(GetParam());
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
                            BPF_STMT(BPF_RET | BPF_K, refuse), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{4, filter};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    try {
      engine_factory(Engine::io_uring)(4);
    } catch (const Failure& failure) {
      message = failure.what();
    }
  }).join();
  EXPECT_NE(message.find(errno_text(GetParam())), std::string::npos) << message;
  EXPECT_NE(message.find("use --engine libaio"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Errors, ForbiddenUringTest, ::testing::Values(EPERM, ENOSYS));

// A drive that gives less than was asked for, at most so much at once.
class ShortReads : public IoEngine {
 public:
  ShortReads(std::size_t most, std::size_t end) : most_(most), end_(end) {}
  std::string_view name() const override { return "short reads"; }
  int submit(std::span<const IoRequest> requests) override {
    const IoRequest& request = requests.front();
    offsets.push_back(request.offset);
    const std::size_t left = end_ - std::min<std::size_t>(end_, request.offset);
    done_.push_back({request.tag, static_cast<std::int64_t>(std::min(most_, left))});
    return 1;
  }
  int reap(std::span<IoCompletion> out, unsigned, std::int64_t) override {
    if (done_.empty()) return 0;
    out[0] = done_.front();
    done_.pop_front();
    return 1;
  }
  std::vector<std::uint64_t> offsets;

 private:
  std::size_t most_;
  std::size_t end_;
  std::deque<IoCompletion> done_;
};

constexpr std::size_t kSector = 16384;  // a drive of large sectors

BlockReader::Config sectors() {
  BlockReader::Config config;
  config.target = "drive";
  config.end = config.block_bytes = 4 * kSector;
  config.depth = 1;
  config.alignment = kSector;
  return config;
}

std::shared_ptr<ReadRoom> room_with(std::unique_ptr<IoEngine> engine) {
  return std::make_shared<ReadRoom>(1, 4 * kSector, std::move(engine));
}

TEST(BlockReader, GoesOnAfterAShortReadWhereASectorBegins) {
  const auto room = room_with(std::make_unique<ShortReads>(kSector + 512, 4 * kSector));
  BlockReader reader(sectors(), room);
  EXPECT_EQ(reader.next().size(), 4 * kSector);
  for (const std::uint64_t offset : dynamic_cast<ShortReads&>(*room->engine).offsets)
    EXPECT_EQ(offset % kSector, 0u) << offset;
}

TEST(BlockReader, GivesUpOnADriveThatNeverGivesASector) {
  const auto room = room_with(std::make_unique<ShortReads>(512, 4 * kSector));
  BlockReader reader(sectors(), room);
  EXPECT_THROW(reader.next(), Failure);
}

}  // namespace
}  // namespace daqwriter
