#include <cstring>

#include "base/status.h"
#include "baselines.h"
#include "lmdb_engine.h"
#include "lmdb_keys.h"

namespace hotstore {
namespace {

// A hot store keeps its key schema under this name: each of the two refuses the other's folder.
constexpr const char* kRawSchemaName = "schema";
constexpr const char* kOwnSchema = "raw-lmdb, records without checksums";
constexpr View kHead = "1";

class RawLmdbSession : public Session {
 public:
  RawLmdbSession(LmdbEnv& env, const KeySchema& schema)
      : env_(env.handle()), table_(env.table()), schema_(schema) {
    check_lmdb(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "mdb_txn_begin for reading");
    mdb_txn_reset(reader_);
  }
  ~RawLmdbSession() override { mdb_txn_abort(reader_); }
  RawLmdbSession(const RawLmdbSession&) = delete;
  RawLmdbSession& operator=(const RawLmdbSession&) = delete;

  Answer put(const Key& key, View value, Level /*level*/) override {
    const Bytes at = key_of(key);
    return change([&](MDB_txn* txn) {
      MDB_val where = as_val(at), room{kHead.size() + value.size() + kSumBytes, nullptr};
      const int code = mdb_put(txn, table_, &where, &room, MDB_NOOVERWRITE | MDB_RESERVE);
      if (code == MDB_KEYEXIST) return Answer::exists;
      check_lmdb(code, "mdb_put");
      char* to = static_cast<char*>(room.mv_data);
      std::memcpy(to, kHead.data(), kHead.size());
      std::memcpy(to + kHead.size(), value.data(), value.size());
      std::memset(to + kHead.size() + value.size(), 0, kSumBytes);
      return Answer::ok;
    });
  }

  Answer get(const Key& key, Bytes& value) override {
    const Bytes at = key_of(key);
    check_lmdb(mdb_txn_renew(reader_), "mdb_txn_renew");
    MDB_val where = as_val(at), found;
    const int code = mdb_get(reader_, table_, &where, &found);
    if (code == 0 && found.mv_size >= kHead.size() + kSumBytes)
      value.assign(as_view(found).substr(kHead.size(), found.mv_size - kHead.size() - kSumBytes));
    mdb_txn_reset(reader_);
    if (code == MDB_NOTFOUND) return Answer::not_found;
    check_lmdb(code, "mdb_get");
    return Answer::ok;
  }

  Answer remove(const Key& key) override {
    const Bytes at = key_of(key);
    return change(
        [&](MDB_txn* txn) { return erase_record(txn, table_, at) ? Answer::ok : Answer::not_found; });
  }

 private:
  Bytes key_of(const Key& key) const { return kind_key(kDataKind, schema_.encode(key)); }

  template <typename Body>
  Answer change(const Body& body) {
    Answer answer = Answer::full;
    try {
      in_transaction(env_, [&](MDB_txn* txn) { answer = body(txn); });
    } catch (const StoreFull&) {
      return Answer::full;
    }
    return answer;
  }

  MDB_env* env_;
  MDB_dbi table_;
  const KeySchema& schema_;
  MDB_txn* reader_ = nullptr;
};

class RawLmdb : public Subject {
 public:
  RawLmdb(std::unique_ptr<LmdbEnv> env, KeySchema schema)
      : schema_(std::move(schema)),
        env_(*env),
        engine_(lmdb_engine(std::move(env), schema_.primary_bytes())) {
    const Bytes kept = engine_->remember(kRawSchemaName, kOwnSchema);
    if (kept != kOwnSchema)
      throw daqwriter::Refusal(
          engine_->description() + " holds keys of '" + kept +
          "': --engine raw-lmdb writes records without checksums, give it a folder of its own");
    env_.folder().share();
  }

  std::unique_ptr<Session> session() override { return std::make_unique<RawLmdbSession>(env_, schema_); }
  std::string gone() const override { return engine_->gone(); }
  std::string promise() const override { return engine_->promise(); }

 private:
  KeySchema schema_;
  LmdbEnv& env_;  // the engine's
  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::unique_ptr<Subject> open_raw_lmdb(std::unique_ptr<LmdbEnv> env, KeySchema schema) {
  return std::make_unique<RawLmdb>(std::move(env), std::move(schema));
}

}  // namespace hotstore
