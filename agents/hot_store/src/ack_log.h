// Promise: what was acknowledged, and what was begun, outlives the process that
// is killed: every record is handed to the system with one write before the
// next operation starts. `verify` compares it with the store.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hotstore {

enum class Ack : char {
  put = 'p',        // acknowledged
  uncertain = 'u',  // a put that was not confirmed
  begun = 'b',      // removal is about to be asked for
  removed = 'e',    // acknowledged
  given_up = 'l'    // the removal that was begun was refused
};

class AckLog {
 public:
  AckLog() = default;  // keeps nothing
  AckLog(const std::string& directory,
         const std::string& name);  // a new file; throws Refusal when it is there
  ~AckLog();
  AckLog(AckLog&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  AckLog& operator=(AckLog&&) = delete;

  void write(Ack ack, std::uint64_t primary);  // throws Failure

 private:
  int fd_ = -1;
};

struct AckState {
  int puts = 0;
  int uncertain = 0;
  int begun = 0;  // removals that neither ended nor were refused
  int removed = 0;
};

// Of all files in the directory; a torn last record is left out. Throws
// Refusal.
std::map<std::uint64_t, AckState> read_acks(const std::string& directory);

}  // namespace hotstore
