#include "lmdb_env.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iostream>

#include "base/file_identity.h"
#include "base/status.h"
#include "base/units.h"

namespace hotstore {
namespace {

using daqwriter::errno_text;
using daqwriter::Failure;
using daqwriter::Refusal;
namespace fs = std::filesystem;

constexpr unsigned kMostReaders = 1022;
constexpr mode_t kDataMode = 0644;
// Room that LMDB's own pages may still need beyond its given map size.
constexpr std::uint64_t kMargin = 1 << 20;

// LMDB answers so for pages that no store of ours has.
bool means_damage(int code) {
  constexpr std::array kCodes{MDB_CORRUPTED,        MDB_PAGE_NOTFOUND, MDB_PANIC,
                              MDB_VERSION_MISMATCH, MDB_INVALID,       MDB_INCOMPATIBLE,
                              MDB_CURSOR_FULL,      MDB_BAD_TXN,       MDB_BAD_VALSIZE};
  return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

}  // namespace

void check_lmdb(int code, const char* what) {
  if (code == 0) return;
  if (code == MDB_MAP_FULL) throw StoreFull();
  if (means_damage(code)) throw Damage(std::string(what) + ": " + mdb_strerror(code));
  throw Failure(std::string(what) + ": " + mdb_strerror(code));
}

LmdbEnv::LmdbEnv(std::unique_ptr<LevelFolder> folder, std::uint64_t capacity, Durability durability)
    : folder_(std::move(folder)), durability_(durability), capacity_(capacity) {
  if (capacity < kLeastCapacity || capacity > kMostCapacity) throw Refusal("a capacity out of bounds");
  try {
    if (changes()) {
      if (folder_->lost_by_crash())
        throw Refusal(
            folder_->name() +
            ": the machine went down while this store was not synchronised, so that it may be damaged: "
            "`hotstore verify` tells what is left; put new events into a new folder");
      refuse_another_durability();
      reserve(capacity);
      folder_->keep();
      if (durability_ == Durability::process) folder_->mark_not_synced();
    }
    open(capacity);
    // As a process leaves it that was killed before it synchronised.
    if (changes() && durability_ == Durability::system && folder_->is_marked_not_synced()) {
      check_lmdb(mdb_env_sync(env_, 1), "mdb_env_sync");
      folder_->clear_not_synced();
    }
  } catch (const Damage& damage) {
    if (env_) mdb_env_close(env_);
    throw_located(damage);
  } catch (...) {
    if (env_) mdb_env_close(env_);
    throw;
  }
}

// No process makes durable what another one does not synchronise: the mark is the mode of all who have the
// store open.
void LmdbEnv::refuse_another_durability() const {
  const bool marked = folder_->is_marked_not_synced();
  if (folder_->alone() || marked == (durability_ == Durability::process)) return;
  throw Refusal(folder_->name() + ": another process has it open with --durability " +
                (marked ? "process" : "system") + ": give the same, or wait for its end");
}

void LmdbEnv::throw_located(const Damage& damage) const {
  const std::string text = damage.what(), place = folder_->name() + " is damaged: ";
  throw Damage(text.starts_with(place) ? text : place + text);
}

void LmdbEnv::reserve(std::uint64_t capacity) const {
  const fs::path file = folder_->path() / "data.mdb";
  const daqwriter::OpenFile fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kDataMode);
  if (fd < 0) throw Refusal(folder_->name() + ": data.mdb: " + errno_text(errno));
  struct stat found {};
  struct statvfs space {};
  fstat(fd, &found);
  fstatvfs(fd, &space);
  const std::uint64_t there = static_cast<std::uint64_t>(found.st_blocks) * 512;
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  const std::uint64_t missing = capacity > there ? capacity - there : 0;
  const bool was_new = found.st_size == 0;
  int error = missing > 0 && missing + kMargin > free_bytes ? ENOSPC : 0;
  // Beyond the end of the file, so that LMDB still sees a new one as new.
  if (error == 0 && missing > 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(capacity)) != 0 &&
      errno != EOPNOTSUPP)
    error = errno;
  if (error == 0) return;
  if (was_new) unlink(file.c_str());
  throw Refusal(folder_->name() + ": no room for --capacity " + daqwriter::format_size(capacity) + " (" +
                daqwriter::format_size(free_bytes) + " free): " + errno_text(error));
}

// LMDB opens both by name and follows links, its lock file for writing even where it only reads: what a link
// leads to is another's.
void LmdbEnv::refuse_links() const {
  for (const char* name : {"data.mdb", "lock.mdb"}) {
    struct stat found {};
    if (lstat((folder_->path() / name).c_str(), &found) != 0) {
      if (errno == ENOENT) continue;
      throw Refusal(folder_->name() + ": " + name + ": " + errno_text(errno));
    }
    // A second name is harmless to data that are only read, such as those of a copy by hard links.
    const bool written = changes() || name == std::string_view("lock.mdb");
    if (!S_ISREG(found.st_mode) || (written && found.st_nlink != 1))
      throw Refusal(
          folder_->name() + ": " + name +
          " is no file of its own (a link, or not a regular file); remove it, or name another folder");
  }
}

void LmdbEnv::open(std::uint64_t capacity) {
  refuse_links();
  check_lmdb(mdb_env_create(&env_), "mdb_env_create");
  check_lmdb(mdb_env_set_mapsize(env_, capacity), "mdb_env_set_mapsize");
  check_lmdb(mdb_env_set_maxreaders(env_, kMostReaders), "mdb_env_set_maxreaders");
  unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | MDB_NOMEMINIT;
  if (!changes()) flags |= MDB_RDONLY;
  if (changes() && durability_ == Durability::process) flags |= MDB_WRITEMAP | MDB_NOSYNC;
  const int code = mdb_env_open(env_, folder_->path().c_str(), flags, kDataMode);
  if (means_damage(code)) throw Damage(std::string("mdb_env_open: ") + mdb_strerror(code));
  if (code == ENOENT && !changes()) throw Damage("data.mdb is missing or empty");
  if (code != 0) throw Refusal(folder_->name() + ": cannot be opened: " + mdb_strerror(code));
  refuse_page_size();
  forget_dead_readers();
  if (changes() && durability_ == Durability::process) populate();
  const auto open_table = [this](MDB_txn* txn) {
    check_lmdb(mdb_dbi_open(txn, nullptr, 0, &table_), "mdb_dbi_open");
  };
  in_transaction(env_, open_table, changes() ? 0 : MDB_RDONLY);
}

// LMDB believes the file, and loops for ever with pages of another size.
void LmdbEnv::refuse_page_size() const {
  MDB_stat found;
  check_lmdb(mdb_env_stat(env_, &found), "mdb_env_stat");
  if (found.ms_psize != static_cast<unsigned>(sysconf(_SC_PAGESIZE)))
    throw Damage("it says that its pages have " + std::to_string(found.ms_psize) + " bytes");
}

// Maps every page now, so that no operation waits for a page fault. Where the
// kernel cannot, they come one by one. LMDB tells the map's address only where
// it was asked for a fixed one; the kernel tells it by the file's name.
void LmdbEnv::populate() const {
#ifdef MADV_POPULATE_WRITE
  const std::string file = fs::canonical(folder_->path() / "data.mdb").string();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(" " + file)) continue;
    std::size_t used = 0;
    const std::uintptr_t begin = std::stoull(line, &used, 16);
    const std::uintptr_t end = std::stoull(line.substr(used + 1), nullptr, 16);
    // Too little memory for it (EFAULT, ENOMEM) is no reason to stop: the room
    // itself is reserved.
    if (madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) != 0) return;
  }
#endif
}

LmdbEnv::~LmdbEnv() {
  for (MDB_txn* txn : readers_) mdb_txn_abort(txn);
  const int code = changes() ? mdb_env_sync(env_, 1) : 0;
  mdb_env_close(env_);
  if (code != 0)
    std::cerr << "hotstore: " << folder_->name() << " could not be synchronised: " << mdb_strerror(code)
              << "; it does not survive a crash of the machine\n";
  if (changes() && code == 0) folder_->clear_not_synced();
}

std::string LmdbEnv::gone() const {
  int data = -1;
  const fs::path& folder = folder_->path();
  struct stat lock {};
  const bool there = mdb_env_get_fd(env_, &data) == 0 &&
                     daqwriter::leads_to(AT_FDCWD, (folder / "data.mdb").string(), data) &&
                     lstat((folder / "lock.mdb").c_str(), &lock) == 0;
  return there ? "" : folder_->name() + ": its files were removed or replaced while it was in use";
}

std::size_t LmdbEnv::last_commit() const {
  MDB_envinfo info;
  mdb_env_info(env_, &info);
  return info.me_last_txnid;
}

int LmdbEnv::forget_dead_readers() {
  int dead = 0;
  check_lmdb(mdb_reader_check(env_, &dead), "mdb_reader_check");
  return dead;
}

std::uint64_t LmdbEnv::entries(MDB_txn* txn) const {
  MDB_stat found;
  check_lmdb(mdb_stat(txn, table_, &found), "mdb_stat");
  return found.ms_entries;
}

std::uint64_t LmdbEnv::pages() const {
  MDB_envinfo info;
  mdb_env_info(env_, &info);
  return info.me_last_pgno + 1;
}

std::uint64_t LmdbEnv::used_pages(MDB_txn* txn) const {
  std::uint64_t used = 0;
  for (const MDB_dbi table : {kFreeTable, table_}) {
    MDB_stat found;
    check_lmdb(mdb_stat(txn, table, &found), "mdb_stat");
    used += found.ms_branch_pages + found.ms_leaf_pages + found.ms_overflow_pages;
  }
  return used;
}

void LmdbEnv::leave_room(MDB_txn* txn) const {
  constexpr std::uint64_t kReserve = 64 << 10;  // a handful of the tree's pages
  constexpr std::uint64_t kNearly = 64 * kReserve;
  constexpr std::uint64_t kPage = 4096;
  MDB_envinfo info;
  mdb_env_info(env_, &info);
  if ((info.me_last_pgno + 1) * kPage + kNearly < capacity_) return;
  MDB_val at = as_val("reserve"), room{kReserve, nullptr};
  check_lmdb(mdb_put(txn, table_, &at, &room, MDB_RESERVE), "mdb_put");
  check_lmdb(mdb_del(txn, table_, &at, nullptr), "mdb_del");
}

void LmdbEnv::submit(Pending& pending) {
  Pending* head = waiting_.load(std::memory_order_relaxed);
  do {
    pending.next = head;
  } while (
      !waiting_.compare_exchange_weak(head, &pending, std::memory_order_release, std::memory_order_relaxed));
  {
    std::lock_guard hold(gate_);
    if (!pending.done) commit_waiting();
  }
  if (pending.error) std::rethrow_exception(pending.error);
}

// Called under the gate; works in the order in which they came.
void LmdbEnv::commit_waiting() {
  Pending* first = nullptr;
  for (Pending* each = waiting_.exchange(nullptr, std::memory_order_acquire); each;) {
    Pending* const next = each->next;
    each->next = first;
    first = each;
    each = next;
  }
  if (first->next == nullptr) {
    commit_alone(*first);
  } else {
    try {
      in_transaction(env_, [first](MDB_txn* txn) {
        for (Pending* each = first; each; each = each->next) each->run(each->context, txn);
      });
      commits_.fetch_add(1, std::memory_order_relaxed);
    } catch (...) {
      // One of them failed and undid the others' work too: each gets a
      // transaction of its own.
      for (Pending* each = first; each; each = each->next) commit_alone(*each);
    }
  }
  for (Pending* each = first; each; each = each->next) each->done = true;
}

void LmdbEnv::commit_one(Pending& pending) {
  in_transaction(env_, [&](MDB_txn* txn) { pending.run(pending.context, txn); });
  commits_.fetch_add(1, std::memory_order_relaxed);
}

// A full store may be full of pages that a killed reader still pins: forgetting
// the reader makes room again.
void LmdbEnv::commit_alone(Pending& pending) {
  try {
    try {
      commit_one(pending);
    } catch (const StoreFull&) {
      if (forget_dead_readers() == 0) throw;
      commit_one(pending);
    } catch (const Damage& damage) {
      throw_located(damage);
    }
  } catch (...) {
    pending.error = std::current_exception();
  }
}

MDB_txn* LmdbEnv::take_reader() {
  MDB_txn* txn = nullptr;
  {
    std::lock_guard hold(readers_gate_);
    if (!readers_.empty()) {
      txn = readers_.back();
      readers_.pop_back();
    }
  }
  if (txn) {
    check_lmdb(mdb_txn_renew(txn), "mdb_txn_renew");
    return txn;
  }
  int code = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn);
  if (code == MDB_READERS_FULL) {
    forget_dead_readers();
    code = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn);
  }
  check_lmdb(code, "mdb_txn_begin for reading");
  return txn;
}

void LmdbEnv::give_reader(MDB_txn* txn) {
  mdb_txn_reset(txn);
  std::lock_guard hold(readers_gate_);
  readers_.push_back(txn);
}

}  // namespace hotstore
