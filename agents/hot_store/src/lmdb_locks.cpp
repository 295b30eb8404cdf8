// The locks of the embedded engine: who holds which event, until when.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/status.h"
#include "lmdb_engine.h"
#include "lmdb_keys.h"

namespace hotstore {
namespace {

constexpr const char* kTokenName = "last token";
constexpr auto kPauseOfAFullStore = std::chrono::milliseconds(10);
constexpr int kTriesOfAFullStore = 1000;  // 10 s

std::size_t search_index(std::optional<char> level) {
  return level ? static_cast<std::size_t>(*level - '0') : 0;
}

}  // namespace

LmdbEngine::Lock LmdbEngine::lock_of(View record) const {
  if (record.size() < 2 * kNumberBytes) throw Damage("a lock is shorter than its token and its deadline");
  return Lock{number_of(record), static_cast<std::int64_t>(number_of(record.substr(kNumberBytes))),
              Bytes(record.substr(2 * kNumberBytes))};
}

std::optional<LmdbEngine::Lock> LmdbEngine::find_lock(MDB_txn* txn, View primary) const {
  View found;
  if (!find(txn, kind_key(kLockKind, primary), found)) return std::nullopt;
  return lock_of(found);
}

// Every lock with a deadline stands among the leases, and nothing else does.
void LmdbEngine::check_locks(MDB_txn* txn) const {
  std::uint64_t leases = 0;
  Cursor cursor(txn, env_->table());
  const Bytes locks = kind_key(kLockKind, {}), dues = kind_key(kDueKind, {});
  for (bool there = cursor.seek(locks); there && cursor.key().starts_with(locks); there = cursor.next()) {
    const Lock lock = lock_of(cursor.value());
    if (lock.deadline_ms == kNoDeadline) continue;
    View found;
    if (!find(txn, due_key(lock.deadline_ms, cursor.key().substr(1)), found))
      throw Damage("lock " + hexadecimal(cursor.key()) + " has no lease");
    ++leases;
  }
  for (bool there = cursor.seek(dues); there && cursor.key().starts_with(dues); there = cursor.next()) {
    if (leases-- == 0) throw Damage("lease " + hexadecimal(cursor.key()) + " has no lock");
  }
}

void LmdbEngine::set_lock(MDB_txn* txn, View primary, const std::optional<Lock>& before,
                          const Lock& lock) const {
  if (before && before->deadline_ms != kNoDeadline) erase(txn, due_key(before->deadline_ms, primary));
  const Bytes numbers = number_bytes(lock.token) + number_bytes(static_cast<std::uint64_t>(lock.deadline_ms));
  store(txn, kind_key(kLockKind, primary), numbers, lock.owner);
  if (lock.deadline_ms != kNoDeadline) store(txn, due_key(lock.deadline_ms, primary), {}, {});
}

void LmdbEngine::drop_lock(MDB_txn* txn, View primary, const Lock& lock) const {
  if (lock.deadline_ms != kNoDeadline) erase(txn, due_key(lock.deadline_ms, primary));
  erase(txn, kind_key(kLockKind, primary));
}

// May the holder of `token` change the event? `lock` gets its lock.
Answer LmdbEngine::fence(MDB_txn* txn, View primary, Token token, std::optional<Lock>& lock) const {
  lock = find_lock(txn, primary);
  const bool holds = lock && lock->deadline_ms >= now_();
  if (token == kNoToken) return holds ? Answer::locked : Answer::ok;
  return holds && lock->token == token ? Answer::ok : Answer::lease_lost;
}

bool LmdbEngine::has_fragment(MDB_txn* txn, View primary, std::optional<char> level) const {
  const Bytes prefix = kind_key(kDataKind, primary);
  Cursor cursor(txn, env_->table());
  for (bool there = cursor.seek(prefix); there && cursor.key().starts_with(prefix); there = cursor.next()) {
    if (!level || cursor.level() == *level) return true;
  }
  return false;
}

Token LmdbEngine::next_token(MDB_txn* txn) const {
  const Bytes at = kind_key(kMetaKind, kTokenName);
  View found;
  const Token last = find(txn, at, found) ? number_of(found) : kNoToken;
  store(txn, at, number_bytes(last + 1), {});
  return last + 1;
}

Grant LmdbEngine::grant(MDB_txn* txn, View primary, const std::optional<Lock>& before,
                        const std::string& owner, std::int64_t deadline_ms) const {
  const Lock lock{next_token(txn), deadline_ms, owner};
  set_lock(txn, primary, before, lock);
  return {Bytes(primary), lock.token, before.has_value()};
}

// The event whose lease ran out first. One that has no fragments any more is
// forgotten.
std::optional<Grant> LmdbEngine::run_out(MDB_txn* txn, const Claimant& claimant, std::int64_t now_ms) const {
  Bytes from = kind_key(kDueKind, {});
  for (;;) {
    Bytes due;
    {
      Cursor cursor(txn, env_->table());
      if (!cursor.seek(from) || cursor.key().front() != kDueKind) return std::nullopt;
      due = Bytes(cursor.key());
    }
    if (due.size() != 1 + kNumberBytes + primary_bytes_)
      throw Damage("lease " + hexadecimal(due) + " is not as long as a lease of this store");
    const auto deadline_ms = static_cast<std::int64_t>(number_of(View(due).substr(1)));
    if (deadline_ms >= now_ms) return std::nullopt;
    const Bytes primary = due.substr(1 + kNumberBytes);
    const std::optional<Lock> lock = find_lock(txn, primary);
    if (!lock || lock->deadline_ms != deadline_ms) throw Damage("lease " + hexadecimal(due) + " has no lock");
    if (has_fragment(txn, primary, claimant.level))
      return grant(txn, primary, lock, claimant.owner, now_ms + claimant.lease_ms);
    if (lock && !has_fragment(txn, primary, std::nullopt)) drop_lock(txn, primary, *lock);
    from = due + '\0';
  }
}

std::int64_t LmdbEngine::next_deadline(MDB_txn* txn) const {
  Cursor cursor(txn, env_->table());
  if (!cursor.seek(kind_key(kDueKind, {})) || cursor.key().front() != kDueKind) return kNoDeadline;
  return static_cast<std::int64_t>(number_of(cursor.key().substr(1)));
}

// The first event at or after `from` that has no lock and a fragment at the
// level.
std::optional<Bytes> LmdbEngine::unlocked_from(MDB_txn* txn, View from, std::optional<char> level) const {
  Bytes at = kind_key(kDataKind, from);
  Cursor cursor(txn, env_->table());
  while (!at.empty() && cursor.seek(at) && cursor.key().front() == kDataKind) {
    const Bytes primary(cursor.key().substr(1, primary_bytes_));
    if (primary.size() != primary_bytes_)
      throw Damage("key " + hexadecimal(cursor.key()) + " is shorter than a key of this store");
    if (!find_lock(txn, primary) && (!level || has_fragment(txn, primary, level))) return primary;
    at = after_all_of(kind_key(kDataKind, primary));
  }
  return std::nullopt;
}

std::optional<Grant> LmdbEngine::get_any(const Claimant& claimant) {
  const std::size_t index = search_index(claimant.level);
  const std::int64_t now_ms = now_();
  Bytes from;
  {
    std::lock_guard hold(searches_gate_);
    const Search& search = searches_[index];
    // Nothing was committed since a search found nothing, and no lease ran out:
    // it would find nothing again.
    if (search.fruitless_commit == env_->last_commit() && now_ms <= search.until_ms) return std::nullopt;
    from = search.from;
  }
  std::optional<Grant> given;
  Search next;
  const auto search = [&](MDB_txn* txn) {
    given = run_out(txn, claimant, now_ms);
    next = {from, 0, 0};
    if (given) return Answer::ok;
    std::optional<Bytes> primary = unlocked_from(txn, from, claimant.level);
    if (!primary && !from.empty()) primary = unlocked_from(txn, {}, claimant.level);
    if (primary) {
      given = grant(txn, *primary, std::nullopt, claimant.owner, now_ms + claimant.lease_ms);
      next.from = after_all_of(*primary);
    } else {
      next = {{}, env_->last_commit(), next_deadline(txn)};
    }
    return Answer::ok;
  };
  // Full for a moment is no end: who has an event already makes room when it is done with it.
  Answer answer = change(search);
  for (int tries = 1; answer == Answer::full && tries < kTriesOfAFullStore; ++tries) {
    std::this_thread::sleep_for(kPauseOfAFullStore);
    answer = change(search);
  }
  if (answer != Answer::ok)
    throw daqwriter::Failure(description() +
                             " has had no room to keep a lock for 10 s: give it more --capacity");
  if (given && given->returned) env_->forget_dead_readers();
  std::lock_guard hold(searches_gate_);
  searches_[index] = next;
  return given;
}

Answer LmdbEngine::renew(View primary, Token token, std::int64_t lease_ms) {
  return change_fenced(primary, token, [&](MDB_txn* txn, const std::optional<Lock>& lock) {
    if (!lock) return Answer::not_found;
    set_lock(txn, primary, lock, {token, now_() + lease_ms, lock->owner});
    return Answer::ok;
  });
}

Answer LmdbEngine::lock(View primary, const std::string& owner, Grant& given) {
  return change_fenced(primary, kNoToken, [&](MDB_txn* txn, const std::optional<Lock>& lock) {
    if (!has_fragment(txn, primary, std::nullopt)) return Answer::not_found;
    given = grant(txn, primary, lock, owner, kNoDeadline);
    return Answer::ok;
  });
}

Answer LmdbEngine::unlock(View primary, Token token) {
  return change_fenced(primary, token, [&](MDB_txn* txn, const std::optional<Lock>& lock) {
    if (!lock) return Answer::not_found;
    drop_lock(txn, primary, *lock);
    return Answer::ok;
  });
}

}  // namespace hotstore
