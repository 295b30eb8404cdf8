// Memory where the system refuses what makes it fast, or the memory itself: it is there in full and zero, or
// it is a failure that says so.
#include "base/memory.h"

#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <thread>

#include "base/placement.h"
#include "base/status.h"
#include "support.h"

namespace daqwriter {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLarge = 200 * kMiB + 4096 + 1;

void expect_zero(const Memory& memory) {
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.size(),
                          [](std::byte each) { return each == std::byte{0}; }));
}

// Linux, Documentation/admin-guide/cgroup-v2.rst: memory.max is "max" without a limit, and one of a group
// above holds below it; cgroup-v1/memory.rst: without one the limit is larger than any memory.
TEST(AvailableMemory, IsWhatTheLimitsOfTheCgroupsLeave) {
  const testing::TempDir tree;
  const auto put = [&](const std::string& file, const std::string& text) {
    testing::write_text(tree.path(file), text);
  };
  put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n");
  EXPECT_EQ(available_memory(tree.path("")).bytes, 8'192'000u);
  put("proc/self/cgroup", "0::/jobs/7\n");
  put("sys/fs/cgroup/jobs/7/memory.max", "max\n");
  put("sys/fs/cgroup/jobs/7/memory.current", "1000000\n");
  EXPECT_EQ(available_memory(tree.path("")).source, "MemAvailable");
  put("sys/fs/cgroup/jobs/memory.max", "3000000\n");
  put("sys/fs/cgroup/jobs/memory.current", "1500000\n");
  put("sys/fs/cgroup/jobs/memory.stat", "anon 1\ninactive_file 400000\nactive_file 7\n");
  EXPECT_EQ(available_memory(tree.path("")).bytes, 1'900'000u);
  EXPECT_EQ(available_memory(tree.path("")).source, "the limit of the memory cgroup /jobs");
  put("sys/fs/cgroup/jobs/memory.current", "5000000\n");
  EXPECT_EQ(available_memory(tree.path("")).bytes, 0u);
  put("proc/self/cgroup", "12:cpu:/\n4:memory:/a\n");
  put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000000\n");
  put("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1200000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1200000\n");
  EXPECT_EQ(available_memory(tree.path("")).bytes, 800'000u);
}

// The system call with this value of its argument fails with this error, in this thread.
void refuse(unsigned call, unsigned argument, unsigned value, int error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, args)) + 8 * argument),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{6, filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(Memory, IsZeroAndBeginsAtAHugePageWhereItMayHoldOne) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, 2 * kMiB, 2 * kMiB + 1, kLarge}) {
    const Memory memory(bytes, std::nullopt);
    EXPECT_EQ(memory.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % (bytes < 2 * kMiB ? 4096 : 2 * kMiB), 0u);
    expect_zero(memory);
    for (const Feature& each : memory.features()) EXPECT_EQ(each.in_use, each.reason.empty()) << each.name;
  }
  EXPECT_EQ(Memory(4096, std::nullopt).features().front().reason, "smaller than a huge page");
}

TEST(Memory, HoldsNoMoreThanWasAskedFor) {
  const auto mapped = [] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  };
  const std::size_t before = mapped();
  {
    const Memory memory(8 * kMiB, std::nullopt);
    EXPECT_LE(mapped(), before + 8 * kMiB + kMiB);
  }
  EXPECT_LE(mapped(), before + kMiB);
}

TEST(Memory, WithoutHugePagesIsThereAndSaysSo) {
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  const Memory memory(kLarge, std::nullopt);
  prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  expect_zero(memory);
  EXPECT_FALSE(memory.features().front().in_use);
  EXPECT_NE(memory.features().front().reason.find("huge pages"), std::string::npos);
}

TEST(Memory, OfOneCpuIsTouchedByOneThread) {
  std::thread([] {
    pin_this_thread({allowed_cpus().front()});
    const Memory memory(kLarge, std::nullopt);
    expect_zero(memory);
    EXPECT_EQ(memory.features().back().reason, "there is one CPU");
  }).join();
}

TEST(Memory, IsTouchedByItsOwnThreadWhenTheSystemGivesNone) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "there is one CPU";
  std::thread([] {
    refuse(SYS_clone3, 1, sizeof(clone_args), EAGAIN);
    const Memory memory(kLarge, std::nullopt);
    expect_zero(memory);
    const Feature parallel = memory.features().back();
    EXPECT_NE(parallel.reason.find("no more threads"), std::string::npos) << parallel.reason;
  }).join();
}

TEST(Memory, OfAnOlderKernelIsTouchedPageByPage) {
  std::thread([] {
    refuse(SYS_madvise, 2, MADV_POPULATE_WRITE, EINVAL);
    const Memory memory(8 * kMiB, std::nullopt);
    expect_zero(memory);
  }).join();
}

TEST(Memory, ThatTheSystemDoesNotGiveIsAFailureThatSaysSo) {
  std::thread([] {
    refuse(SYS_madvise, 2, MADV_POPULATE_WRITE, ENOMEM);
    try {
      const Memory memory(kLarge, std::nullopt);
      ADD_FAILURE() << "it was given";
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find("ENOMEM"), std::string::npos) << failure.what();
    }
  }).join();
  EXPECT_THROW(Memory(std::size_t{1} << 60, std::nullopt), Failure);
}

}  // namespace
}  // namespace daqwriter
