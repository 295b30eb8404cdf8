#include "ack_log.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/status.h"

namespace hotstore {
namespace {

namespace fs = std::filesystem;
constexpr mode_t kLogMode = 0644;
constexpr std::size_t kContentBytes = 1 + sizeof(std::uint64_t);
constexpr std::size_t kRecordBytes = kContentBytes + sizeof(std::uint32_t);
constexpr const char* kSuffix = ".acks";
constexpr std::string_view kHeader = "hotstore acknowledgements 2\n";
using Record = std::array<char, kRecordBytes>;

std::uint32_t sum_of(std::uint64_t number, const Record& record) {
  return libdeflate_crc32(libdeflate_crc32(0, &number, sizeof number), record.data(), kContentBytes);
}

bool has_its_sum(std::uint64_t number, const Record& record) {
  std::uint32_t sum = 0;
  std::memcpy(&sum, record.data() + kContentBytes, sizeof sum);
  return sum == sum_of(number, record);
}

void take_record(const Record& record, std::map<std::uint64_t, AckState>& events) {
  std::uint64_t primary = 0;
  std::memcpy(&primary, record.data() + 1, sizeof primary);
  AckState& state = events[primary];
  switch (static_cast<Ack>(record[0])) {
    case Ack::put:
      ++state.puts;
      return;
    case Ack::uncertain:
      ++state.uncertain;
      return;
    case Ack::begun:
      ++state.begun;
      return;
    case Ack::removed:
      --state.begun;
      ++state.removed;
      return;
    case Ack::given_up:
      --state.begun;
      return;
  }
  throw daqwriter::Refusal("holds a record of no known kind");
}

void read_log(const fs::path& path, Acks& acks) {
  const auto refuse = [&](const std::string& what) {
    throw daqwriter::Refusal("--ack-log " + path.string() + ": " + what +
                             ": what was acknowledged is not known; use the log as written");
  };
  std::ifstream file(path, std::ios::binary);
  std::string header(kHeader.size(), '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  const auto got = static_cast<std::size_t>(file.gcount());
  if (!kHeader.starts_with(std::string_view(header).substr(0, got))) refuse("is no log of acknowledgements");
  if (got < kHeader.size()) {  // killed before the first record
    acks.torn += got > 0;
    return;
  }
  Record record;
  std::uint64_t number = 0;
  for (; file.read(record.data(), record.size()); ++number) {
    if (!has_its_sum(number, record)) refuse("record " + std::to_string(number) + " is garbled");
    take_record(record, acks.events);
  }
  if (file.bad()) refuse("cannot be read");
  acks.torn += file.gcount() > 0;
}

}  // namespace

AckLog::AckLog(const std::string& directory, const std::string& name) {
  const fs::path file = fs::path(directory) / (name + kSuffix);
  fd_ = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kLogMode);
  if (fd_ < 0) throw daqwriter::Refusal("--ack-log " + file.string() + ": " + daqwriter::errno_text(errno));
  if (::write(fd_, kHeader.data(), kHeader.size()) != static_cast<ssize_t>(kHeader.size()))
    throw daqwriter::Refusal("--ack-log " + file.string() + ": cannot be written");
}

void AckLog::write(Ack ack, std::uint64_t primary) {
  if (fd_ < 0) return;
  Record record{static_cast<char>(ack)};
  std::memcpy(record.data() + 1, &primary, sizeof primary);
  const std::uint32_t sum = sum_of(number_++, record);
  std::memcpy(record.data() + kContentBytes, &sum, sizeof sum);
  if (::write(fd_, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
    throw daqwriter::Failure("--ack-log: " + daqwriter::errno_text(errno));
}

Acks read_acks(const std::string& directory) {
  if (!fs::is_directory(directory))
    throw daqwriter::Refusal("--ack-log " + directory + ": is not a directory");
  Acks acks;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == kSuffix) read_log(entry.path(), acks);
  }
  if (acks.events.empty())
    throw daqwriter::Refusal("--ack-log " + directory +
                             ": nothing was acknowledged there, so that there is nothing to verify: give the "
                             "directory that `hotstore bench --ack-log` wrote");
  return acks;
}

}  // namespace hotstore
