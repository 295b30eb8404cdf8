// Promise: records of acknowledged and of begun operations outlive the process
// that is killed: one write hands each record to the system before the next
// operation starts. `verify` compares them with the store.
//
// A file is a line that says what it is, and records of 13 bytes: the kind, the
// event (8 bytes, least significant first) and a CRC-32 over the record's number
// in the file (8 bytes) and those nine bytes. It shows a record that is changed,
// moved, repeated or gone from the middle. A process that dies while it writes
// leaves a torn one at the end, and a file that ends between two records cannot
// be told from one whose process was killed there.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/file_identity.h"

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

  void write(Ack ack, std::uint64_t primary);  // throws Failure

 private:
  daqwriter::OpenFile fd_;
  std::uint64_t number_ = 0;
};

struct AckState {
  int puts = 0;
  int uncertain = 0;
  int begun = 0;  // removals that neither ended nor were refused
  int removed = 0;
};

struct Acks {
  std::map<std::uint64_t, AckState> events;
  std::uint64_t torn = 0;  // records at the end of a file that are not whole, and left out
};

// Reads all files in the directory. Throws Refusal for a file that is garbled, and
// when the files hold no acknowledgement.
Acks read_acks(const std::string& directory);

}  // namespace hotstore
