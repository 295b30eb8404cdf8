// Promise: a level of a store is a folder with an identity, and nothing is done in a folder without one of
// ours or with another store's: a marker file names the store, the level and the form of its content. It is
// durable before anything else is there. Folders are compared by device and inode, not by their names.
//
// The folder is locked while it is in use: by one process alone while it opens, sweeps or verifies, by all
// that use it afterwards.
#pragma once

#include <filesystem>
#include <string>

#include "base/file_identity.h"

namespace hotstore {

enum class Access {
  change,
  read  // nothing is written, and nobody else may have the store open
};

class LevelFolder {
 public:
  // With `fast`, its store's level 1, it is level 2; else level 1. Makes the folder when its parent exists.
  // Throws Refusal.
  explicit LevelFolder(const std::filesystem::path& path, Access access = Access::change,
                       const LevelFolder* fast = nullptr);
  ~LevelFolder();
  LevelFolder(const LevelFolder&) = delete;
  LevelFolder& operator=(const LevelFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return option_ + " " + path_.string(); }  // as the command line names it
  Access access() const { return access_; }
  const std::string& store() const { return store_; }  // identity of the store
  const std::string& own() const { return own_; }      // identity of this level
  // Returns true while nobody else has it open: until share().
  bool alone() const { return alone_; }
  void share();
  // Keeps the folder from here on: without this call a new folder is removed again, with its identity.
  void keep() { is_new_ = made_ = false; }

  // True: the machine went down while operations were not synchronised.
  bool lost_by_crash() const;
  // True: operations are not synchronised now, or were not when a process was killed.
  bool is_marked_not_synced() const;
  // Sets the mark, durably: from here on a crash of the machine may lose or damage the content.
  void mark_not_synced();
  // The drive has everything: removes the mark, unless somebody else still uses the folder.
  void clear_not_synced();

 private:
  void open();
  void lock();
  bool try_to_lock();
  void refuse_nesting(const LevelFolder& fast) const;
  void identify(const LevelFolder* fast);
  void adopt_identity(const std::string& text, const LevelFolder* fast);
  void make_identity(const LevelFolder* fast);
  void release();

  std::filesystem::path path_;
  Access access_;
  std::string option_;
  int level_;
  std::string store_;
  std::string own_;
  daqwriter::OpenFile fd_;
  bool made_ = false;
  bool is_new_ = false;  // this process gave it its identity
  bool alone_ = false;
};

}  // namespace hotstore
