// Promise: an LMDB environment with one table, whose writers share commits:
// the writer that gets the gate commits for all that wait, so N clients pay for one
// commit (and, where it is asked for, for one flush of the drive).
//
// Room is reserved when the store is opened: a file system that is full is
// refused then, and cannot kill the process later (a page of a mapped file that
// cannot be stored is a SIGBUS).
//
// While commits do not wait for the drive, the folder carries a mark: a crash of
// the machine may lose what was committed and leave the file damaged, so that
// it is not opened for changes again. The mark goes when the last process closes
// the store and has synchronised it.
#pragma once

#include <lmdb.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "answer.h"
#include "store_folder.h"

namespace hotstore {

constexpr std::uint64_t kLeastCapacity = 1 << 20;
constexpr std::uint64_t kMostCapacity = 64ull << 40;

// The events that an acknowledged operation survives.
enum class Durability {
  process,  // the death of any process, kill -9 included; not the machine's
  system    // the machine's too: every commit waits for the drive
};

// No room is left in the store: not a failure of it.
class StoreFull : public std::exception {
 public:
  const char* what() const noexcept override { return "the store is full"; }
};

constexpr MDB_dbi kFreeTable = 0;  // LMDB's own: the pages that are free

inline MDB_val as_val(View bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};
}
inline View as_view(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}
// `what` failed with an LMDB error: throws StoreFull, Damage or
// daqwriter::Failure; 0 does nothing.
void check_lmdb(int code, const char* what);

// Does `body(MDB_txn*)` in a transaction of its own and commits it. Nothing of it is done when this throws.
template <typename Body>
void in_transaction(MDB_env* env, const Body& body, unsigned flags = 0) {
  MDB_txn* txn = nullptr;
  check_lmdb(mdb_txn_begin(env, nullptr, flags, &txn), "mdb_txn_begin");
  try {
    body(txn);
  } catch (...) {
    mdb_txn_abort(txn);
    throw;
  }
  check_lmdb(mdb_txn_commit(txn), "mdb_txn_commit");  // which ends it in any case
}

class LmdbEnv {
 public:
  // Throws Refusal when the folder cannot be used or has no room for
  // `capacity`, Damage when what it holds cannot be opened. Nobody else opens it
  // before share().
  LmdbEnv(std::unique_ptr<LevelFolder> folder, std::uint64_t capacity, Durability durability);
  ~LmdbEnv();
  LmdbEnv(const LmdbEnv&) = delete;
  LmdbEnv& operator=(const LmdbEnv&) = delete;

  // Calls `body(MDB_txn*)` in a transaction that is committed when this
  // returns. `body` may be called a second time, after everything that the
  // first call did was undone. Throws what `body` throws; then nothing of it is
  // done.
  template <typename Body>
  void write(Body&& body) {
    Pending pending{
        [](void* context, MDB_txn* txn) { (*static_cast<std::remove_reference_t<Body>*>(context))(txn); },
        &body};
    submit(pending);
  }

  // Calls `body(MDB_txn*)` in a read-only transaction: a snapshot, which no
  // writer waits for.
  template <typename Body>
  auto read(Body&& body) {
    try {
      Reader reader(*this);
      return body(reader.txn);
    } catch (const Damage& damage) {
      throw_located(damage);
    }
  }

  MDB_dbi table() const { return table_; }
  MDB_env* handle() const { return env_; }  // for operations that go past this layer
  // Number of the last commit, of any process.
  std::string gone() const;  // as Engine::gone
  std::size_t last_commit() const;
  // Frees what readers of processes that were killed still hold; returns how
  // many there were.
  int forget_dead_readers();
  // For a transaction that adds something: throws StoreFull unless room is left
  // for the ones that take away, which need some themselves.
  void leave_room(MDB_txn* txn) const;
  LevelFolder& folder() { return *folder_; }
  const LevelFolder& folder() const { return *folder_; }
  // Records in the table, as the tree itself counts them.
  std::uint64_t entries(MDB_txn* txn) const;
  std::uint64_t pages() const;                   // of the file, as of the last commit
  std::uint64_t used_pages(MDB_txn* txn) const;  // by the table and the list of free pages
  Durability durability() const { return durability_; }
  std::uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }

 private:
  struct Pending {
    void (*run)(void*, MDB_txn*);
    void* context;
    std::exception_ptr error{};
    bool done = false;  // under gate_
    Pending* next = nullptr;
  };
  struct Reader {
    explicit Reader(LmdbEnv& owner) : env(owner), txn(owner.take_reader()) {}
    ~Reader() { env.give_reader(txn); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    LmdbEnv& env;
    MDB_txn* txn;
  };

  [[noreturn]] void throw_located(const Damage& damage) const;
  bool changes() const { return folder_->access() == Access::change; }
  void open(std::uint64_t capacity);
  void refuse_links() const;
  void refuse_another_durability() const;
  void refuse_page_size() const;
  void reserve(std::uint64_t capacity) const;
  void populate() const;
  void submit(Pending& pending);
  void commit_waiting();
  void commit_alone(Pending& pending);
  void commit_one(Pending& pending);
  MDB_txn* take_reader();
  void give_reader(MDB_txn* txn);

  std::unique_ptr<LevelFolder> folder_;
  Durability durability_;
  std::uint64_t capacity_;
  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
  std::atomic<Pending*> waiting_{nullptr};
  std::mutex gate_;
  std::atomic<std::uint64_t> commits_{0};
  std::mutex readers_gate_;
  std::vector<MDB_txn*> readers_;
};

}  // namespace hotstore
