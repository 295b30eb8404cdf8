// The asynchronous I/O interfaces against the real kernel: each transfers what it is given, no more than its
// capacity at once, and says what it could not get.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

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

class EngineTest : public ::testing::TestWithParam<std::string> {
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

INSTANTIATE_TEST_SUITE_P(Engines, EngineTest, ::testing::ValuesIn(engine_names()),
                         [](const auto& test) { return test.param; });

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
TEST(UringEngineTest, GoesOnUnregisteredWhereLockingMemoryIsLimitedAndNamesTheRemedy) {
  std::string note;
  std::int64_t written = 0;
  const TempDir directory;
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    ASSERT_EQ(syscall(SYS_capget, &header, sets), 0);
    sets[0].effective &= ~(1u << CAP_IPC_LOCK);
    ASSERT_EQ(syscall(SYS_capset, &header, sets), 0);
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = 16 * kPage;
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    const Memory memory(1 << 20, std::nullopt);
    const iovec piece{memory.data(), memory.size()};
    UringEngine engine(1);
    engine.register_memory({&piece, 1});
    note = engine.note();
    const int fd = open(directory.path("file").c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
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
}

// What a container's seccomp filter does; it holds for the thread that installs it.
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
      engine_factory("io_uring")(4);
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

std::shared_ptr<ReadRoom> room_with(std::unique_ptr<IoEngine> engine) {
  return std::make_shared<ReadRoom>(1, 4 * kSector, std::move(engine));
}

TEST(BlockReader, GoesOnAfterAShortReadWhereASectorBegins) {
  const auto room = room_with(std::make_unique<ShortReads>(kSector + 512, 4 * kSector));
  BlockReader reader(
      {.target = "drive", .end = 4 * kSector, .block_bytes = 4 * kSector, .depth = 1, .alignment = kSector},
      room);
  EXPECT_EQ(reader.next().size(), 4 * kSector);
  for (const std::uint64_t offset : dynamic_cast<ShortReads&>(*room->engine).offsets)
    EXPECT_EQ(offset % kSector, 0u) << offset;
}

TEST(BlockReader, GivesUpOnADriveThatNeverGivesASector) {
  const auto room = room_with(std::make_unique<ShortReads>(512, 4 * kSector));
  BlockReader reader(
      {.target = "drive", .end = 4 * kSector, .block_bytes = 4 * kSector, .depth = 1, .alignment = kSector},
      room);
  EXPECT_THROW(reader.next(), Failure);
}

}  // namespace
}  // namespace daqwriter
