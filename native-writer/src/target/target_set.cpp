#include "target/target_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file_identity.h"
#include "base/status.h"

namespace daqwriter {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTargets = 64;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool comma_follows = i + 1 < text.size() && text[i + 1] == ',';
    if (text[i] == '\\' && comma_follows) {
      names.back() += text[++i];
    } else if (text[i] == ',') {
      names.emplace_back();
    } else {
      names.back() += text[i];
    }
  }
  return names;
}

std::string with_escaped_commas(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += (c == ',' ? "\\" : "") + std::string(1, c);
  return escaped;
}

// A name that exists, or whose directory exists and has a comma itself, can be meant as it stands.
bool can_be_one_name(const std::string& text) {
  std::error_code unknown;
  const std::string parent = fs::path(text).parent_path();
  return fs::exists(fs::symlink_status(text, unknown)) ||
         (parent.find(',') != std::string::npos && fs::is_directory(parent, unknown));
}

void require_a_list(const std::string& text, const std::vector<std::string>& names) {
  for (std::size_t first = 0; first < names.size(); ++first) {
    std::string one = names[first];
    for (std::size_t last = first + 1; last < names.size(); ++last) {
      one += "," + names[last];
      if (!can_be_one_name(one)) continue;
      throw Refusal("--target " + text + ": by what exists, " + one +
                    " is one name with a comma, or a list of " + std::to_string(last - first + 1) +
                    "; write '" + with_escaped_commas(one) + "' for the one, or give --target several times");
    }
  }
}

FileIdentity identity_of_new_file(const TargetPlan& plan) {
  FileIdentity identity = identity_of(*plan.directory).value_or(FileIdentity{});
  identity.new_name = fs::path(plan.path).filename();
  return identity;
}

}  // namespace

std::vector<std::string> split_targets(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) {
    const std::vector<std::string> names = split(text);
    for (const std::string& name : names) {
      if (name.empty() && names.size() + texts.size() > 2) {
        throw Refusal("--target '" + text +
                      "': an empty name among several; name new files or block devices, with one comma "
                      "between two of them");
      }
      all.push_back(name);
    }
    if (names.size() > 1) require_a_list(text, names);
  }
  require(all.size() <= kMostTargets, "--target " + std::to_string(all.size()) + ": give 1 to " +
                                          std::to_string(kMostTargets) + " targets");
  return all;
}

std::vector<std::string> LoadTargets::targets() const {
  std::vector<std::string> all = {target};
  all.insert(all.end(), further_targets.begin(), further_targets.end());
  return all;
}

std::string targets_text(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + with_escaped_commas(name);
  return text;
}

std::string kinds_name(const std::vector<TargetPlan>& targets) {
  const TargetKind kind = targets.front().kind;
  const bool same =
      std::all_of(targets.begin(), targets.end(), [&](const TargetPlan& each) { return each.kind == kind; });
  return same ? target_kind_name(kind) : "mixed";
}

std::size_t sharing_space(const TargetPlan& one, const std::vector<TargetPlan>& all) {
  if (one.kind != TargetKind::scratch_file) return 1;
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const TargetPlan& each) {
    return each.kind == one.kind && each.device.text() == one.device.text();
  }));
}

TargetSet::TargetSet(Consent consent, const CallLimits& limits, SystemPaths paths)
    : consent_(std::move(consent)), limits_(limits), paths_(std::move(paths)) {
  constexpr double kForUsers_s = 1;  // plan_target() waits for those of a device, who may be about to leave
  limits_.stall_limit_s += kForUsers_s;
}

TargetPlan TargetSet::plan(const std::string& path, const std::string& record_of) {
  const std::string name =
      record_of.empty() ? "--target " + path : path + ", a record of --target " + record_of;
  // A copy: a drive that does not answer keeps it.
  const TargetPlan plan =
      limits_.answer<TargetPlan>(path + ": looking whether it may be written",
                                 [path, name, own = *this] { return own.examine(path, name); });
  planned_.push_back({plan, name});
  return plan;
}

TargetPlan TargetSet::examine(const std::string& path, const std::string& name) const {
  require_other_drive(path);
  TargetPlan plan = plan_target(path, consent_, paths_);
  require_other_file(plan, name);
  return plan;
}

// Before the claim: that of the earlier target holds the drive, and would be called another process.
void TargetSet::require_other_drive(const std::string& path) const {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) return;
  for (const auto& [earlier, name] : planned_) {
    if (!earlier.same_data.contains(number_of(status.st_rdev).text())) continue;
    throw Refusal("--target " + path + ": shows the data of " + name +
                  " (the same drive, another way to it, or a part of it); name every drive once");
  }
}

// By the directories that were examined, wherever their paths lead later.
void TargetSet::require_other_file(const TargetPlan& plan, const std::string& its_name) const {
  if (!plan.directory) return;
  for (const auto& [earlier, name] : planned_) {
    if (!earlier.directory || !(identity_of_new_file(earlier) == identity_of_new_file(plan))) continue;
    throw Refusal(
        its_name + ": is the same file as " + name +
        "; name every target once, and none like a record of another one (TARGET.0, TARGET.1, ...)");
  }
}

}  // namespace daqwriter
