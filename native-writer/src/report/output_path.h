// Promise: where results go is settled before the work. Links are followed once; what is written later goes
// to the folder, the file or the descriptor that was found then, whatever has taken its name meanwhile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_identity.h"

namespace daqwriter {

// What an option names: a file, "-" or a path to one of our own descriptors (/dev/stdout, /dev/fd/3); "":
// nowhere. Copies share what is held.
class OutputPath {
 public:
  OutputPath() = default;
  OutputPath(std::string text) : text_(std::move(text)) {}
  OutputPath(const char* text) : text_(text) {}

  const std::string& text() const { return text_; }
  operator const std::string&() const { return text_; }
  bool empty() const { return text_.empty(); }

  // Both throw Refusal: it could not be written later, or writing it would change one of `used`, the files
  // and directories that the command reads or writes. Nothing is left behind.
  void hold_for_replacement(const std::string& option, const std::vector<std::string>& used) const;
  void hold_for_appending(const std::string& option, const std::vector<std::string>& used) const;

  // The file appears whole under its name, or not at all; but in place where it is a mount point, as
  // containers have it, and as it comes to a descriptor. Holds it first if nobody has. Throws Refusal or
  // Failure.
  void replace(const std::string& content) const;

  // Open for appending until the last copy of this path goes; made now if there is no such file yet. Throws
  // Refusal.
  int appending() const;

 private:
  struct Place {
    OpenFile directory;
    std::string name;     // in `directory`, under no link
    std::string path;     // both, for comparison with other paths; empty of a descriptor that we were given
    OpenFile descriptor;  // instead, or besides: what is written to directly
    bool held = false;
  };

  void settle(const std::string& what, bool append) const;
  void hold(const std::string& option, const std::vector<std::string>& used, bool append) const;

  std::string text_;
  std::shared_ptr<Place> place_ = std::make_shared<Place>();
};

}  // namespace daqwriter
