// The locks of the embedded engine: which event is whose, until when.
#include <algorithm>

#include "lmdb_engine.h"
#include "lmdb_keys.h"
#include "status.h"

namespace hotstore {
namespace {

constexpr const char* kTokenName = "last token";

std::size_t search_index(std::optional<char> level) {
  return level ? static_cast<std::size_t>(*level - '0') : 0;
}

}  // namespace

std::optional<LmdbEngine::Lock> LmdbEngine::find_lock(MDB_txn* txn, View primary) const {
  MDB_val found;
  if (!find(txn, kind_key(kLockKind, primary), found)) return std::nullopt;
  const View bytes = as_view(found);
  return Lock{number_of(bytes), static_cast<std::int64_t>(number_of(bytes.substr(kNumberBytes))),
              Bytes(bytes.substr(2 * kNumberBytes))};
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
    if (!level || cursor.value().front() == *level) return true;
  }
  return false;
}

Token LmdbEngine::next_token(MDB_txn* txn) const {
  const Bytes at = kind_key(kMetaKind, kTokenName);
  MDB_val found;
  const Token last = find(txn, at, found) ? number_of(as_view(found)) : kNoToken;
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
    if (static_cast<std::int64_t>(number_of(View(due).substr(1))) >= now_ms) return std::nullopt;
    const Bytes primary = due.substr(1 + kNumberBytes);
    const std::optional<Lock> lock = find_lock(txn, primary);
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
  const Answer answer = change([&](MDB_txn* txn) {
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
  });
  if (answer != Answer::ok)
    throw daqwriter::Failure(description() + " has no room to keep a lock: give it more --capacity");
  if (given && given->returned) env_->forget_dead_readers();
  std::lock_guard hold(searches_gate_);
  searches_[index] = next;
  return given;
}

Answer LmdbEngine::renew(View primary, Token token, std::int64_t lease_ms) {
  return change([&](MDB_txn* txn) {
    std::optional<Lock> lock;
    const Answer allowed = fence(txn, primary, token, lock);
    if (allowed != Answer::ok) return allowed;
    if (!lock) return Answer::not_found;
    set_lock(txn, primary, lock, {token, now_() + lease_ms, lock->owner});
    return Answer::ok;
  });
}

Answer LmdbEngine::lock(View primary, const std::string& owner, Grant& given) {
  return change([&](MDB_txn* txn) {
    std::optional<Lock> lock;
    const Answer allowed = fence(txn, primary, kNoToken, lock);
    if (allowed != Answer::ok) return allowed;
    if (!has_fragment(txn, primary, std::nullopt)) return Answer::not_found;
    given = grant(txn, primary, lock, owner, kNoDeadline);
    return Answer::ok;
  });
}

Answer LmdbEngine::unlock(View primary, Token token) {
  return change([&](MDB_txn* txn) {
    std::optional<Lock> lock;
    const Answer allowed = fence(txn, primary, token, lock);
    if (allowed != Answer::ok) return allowed;
    if (!lock) return Answer::not_found;
    drop_lock(txn, primary, *lock);
    return Answer::ok;
  });
}

}  // namespace hotstore
