#include "ack_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "status.h"

namespace hotstore {
namespace {

namespace fs = std::filesystem;
constexpr mode_t kMode = 0644;
constexpr std::size_t kRecordBytes = 1 + sizeof(std::uint64_t);
constexpr const char* kSuffix = ".acks";

}  // namespace

AckLog::AckLog(const std::string& directory, const std::string& name) {
  const fs::path file = fs::path(directory) / (name + kSuffix);
  fd_ = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kMode);
  if (fd_ < 0) throw daqwriter::Refusal("--ack-log " + file.string() + ": " + daqwriter::errno_text(errno));
}

AckLog::~AckLog() {
  if (fd_ >= 0) close(fd_);
}

void AckLog::write(Ack ack, std::uint64_t primary) {
  if (fd_ < 0) return;
  std::array<char, kRecordBytes> record{static_cast<char>(ack)};
  std::memcpy(record.data() + 1, &primary, sizeof primary);
  if (::write(fd_, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
    throw daqwriter::Failure("--ack-log: " + daqwriter::errno_text(errno));
}

std::map<std::uint64_t, AckState> read_acks(const std::string& directory) {
  if (!fs::is_directory(directory))
    throw daqwriter::Refusal("--ack-log " + directory + ": is not a directory");
  std::map<std::uint64_t, AckState> states;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != kSuffix) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::array<char, kRecordBytes> record;
    while (file.read(record.data(), record.size())) {
      std::uint64_t primary = 0;
      std::memcpy(&primary, record.data() + 1, sizeof primary);
      AckState& state = states[primary];
      switch (static_cast<Ack>(record[0])) {
        case Ack::put:
          ++state.puts;
          break;
        case Ack::uncertain:
          ++state.uncertain;
          break;
        case Ack::begun:
          ++state.begun;
          break;
        case Ack::removed:
          --state.begun;
          ++state.removed;
          break;
        case Ack::given_up:
          --state.begun;
          break;
        default:
          throw daqwriter::Refusal(entry.path().string() + ": is not a log of acknowledgements");
      }
    }
  }
  return states;
}

}  // namespace hotstore
