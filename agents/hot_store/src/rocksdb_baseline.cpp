#include "rocksdb_baseline.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "base/status.h"
#include "lmdb_engine.h"

namespace hotstore {
namespace {

using daqwriter::Failure;
using daqwriter::Refusal;
namespace fs = std::filesystem;

// RocksDB's C interface (rocksdb/c.h), as far as we use it. It has been
// the same since version 5.
struct Api {
  explicit Api(const std::string& library);

  void* (*options_create)();
  void (*options_destroy)(void*);
  void (*options_set_create_if_missing)(void*, unsigned char);
  void (*options_set_error_if_exists)(void*, unsigned char);
  void (*options_set_manual_wal_flush)(void*, unsigned char);
  void* (*writeoptions_create)();
  void (*writeoptions_destroy)(void*);
  void (*writeoptions_set_sync)(void*, unsigned char);
  void (*writeoptions_disable_WAL)(void*, int);
  void* (*readoptions_create)();
  void (*readoptions_destroy)(void*);
  void* (*open)(const void*, const char*, char**);
  void (*close)(void*);
  void (*put)(void*, const void*, const char*, std::size_t, const char*, std::size_t, char**);
  void (*remove)(void*, const void*, const char*, std::size_t, char**);
  void* (*get_pinned)(void*, const void*, const char*, std::size_t, char**);
  const char* (*pinnableslice_value)(const void*, std::size_t*);
  void (*pinnableslice_destroy)(void*);
  void (*free)(void*);
};

// Never unloaded: RocksDB has threads of its own that outlive a database.
Api::Api(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Refusal("--engine rocksdb: the library cannot be loaded: " + std::string(dlerror()) +
                  ": install it (Debian: librocksdb7.8), or name it by --rocksdb-library");
  const auto find = [&](auto& function, const char* name) {
    const std::string symbol = std::string("rocksdb_") + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol.c_str()));
    if (!function)
      throw Refusal("--rocksdb-library '" + library + "': is not RocksDB, it has no " + symbol +
                    ": give the file of librocksdb");
  };
  find(options_create, "options_create");
  find(options_destroy, "options_destroy");
  find(options_set_create_if_missing, "options_set_create_if_missing");
  find(options_set_error_if_exists, "options_set_error_if_exists");
  find(options_set_manual_wal_flush, "options_set_manual_wal_flush");
  find(writeoptions_create, "writeoptions_create");
  find(writeoptions_destroy, "writeoptions_destroy");
  find(writeoptions_set_sync, "writeoptions_set_sync");
  find(writeoptions_disable_WAL, "writeoptions_disable_WAL");
  find(readoptions_create, "readoptions_create");
  find(readoptions_destroy, "readoptions_destroy");
  find(open, "open");
  find(close, "close");
  find(put, "put");
  find(remove, "delete");
  find(get_pinned, "get_pinned");
  find(pinnableslice_value, "pinnableslice_value");
  find(pinnableslice_destroy, "pinnableslice_destroy");
  find(free, "free");
}

using Handle = std::unique_ptr<void, void (*)(void*)>;

// One of RocksDB's error texts, which are ours to free.
class Error {
 public:
  explicit Error(const Api& api) : api_(api) {}
  ~Error() { api_.free(text_); }
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;
  char** out() { return &text_; }
  void check(const char* what) const {
    if (text_) throw Failure(std::string("RocksDB: ") + what + ": " + text_);
  }
  const char* text() const { return text_; }

 private:
  const Api& api_;
  char* text_ = nullptr;
};

class RocksDb : public Subject {
 public:
  RocksDb(const std::string& library, const std::string& directory, Durability durability, KeySchema schema)
      : api_(library),
        schema_(std::move(schema)),
        durability_(durability),
        write_(api_.writeoptions_create(), api_.writeoptions_destroy),
        read_(api_.readoptions_create(), api_.readoptions_destroy),
        database_(nullptr, api_.close) {
    api_.writeoptions_disable_WAL(write_.get(), 0);
    api_.writeoptions_set_sync(write_.get(), durability == Durability::system);
    const Handle options(api_.options_create(), api_.options_destroy);
    api_.options_set_create_if_missing(options.get(), 1);
    api_.options_set_error_if_exists(options.get(), 1);
    api_.options_set_manual_wal_flush(options.get(), 0);
    Error error(api_);
    database_.reset(api_.open(options.get(), directory.c_str(), error.out()));
    if (!database_) throw Refusal("--dir '" + directory + "': RocksDB: " + error.text());
  }

  std::unique_ptr<Session> session() override;
  std::string promise() const override { return promise_of(durability_); }

  Answer put(const Key& key, View value) {
    const Bytes at = schema_.encode(key);
    if (find(at, nullptr)) return Answer::exists;
    Error error(api_);
    api_.put(database_.get(), write_.get(), at.data(), at.size(), value.data(), value.size(), error.out());
    error.check("put");
    return Answer::ok;
  }

  Answer get(const Key& key, Bytes& value) {
    return find(schema_.encode(key), &value) ? Answer::ok : Answer::not_found;
  }

  Answer remove(const Key& key) {
    const Bytes at = schema_.encode(key);
    if (!find(at, nullptr)) return Answer::not_found;
    Error error(api_);
    api_.remove(database_.get(), write_.get(), at.data(), at.size(), error.out());
    error.check("delete");
    return Answer::ok;
  }

 private:
  bool find(const Bytes& at, Bytes* value) {
    Error error(api_);
    const Handle slice(api_.get_pinned(database_.get(), read_.get(), at.data(), at.size(), error.out()),
                       api_.pinnableslice_destroy);
    error.check("get");
    if (!slice) return false;
    std::size_t bytes = 0;
    const char* const found = api_.pinnableslice_value(slice.get(), &bytes);
    if (value) value->assign(found, bytes);
    return true;
  }

  Api api_;
  KeySchema schema_;
  Durability durability_;
  Handle write_, read_, database_;
};

class RocksDbSession : public Session {
 public:
  explicit RocksDbSession(RocksDb& database) : database_(database) {}
  Answer put(const Key& key, View value, Level /*level*/) override { return database_.put(key, value); }
  Answer get(const Key& key, Bytes& value) override { return database_.get(key, value); }
  Answer remove(const Key& key) override { return database_.remove(key); }

 private:
  RocksDb& database_;
};

std::unique_ptr<Session> RocksDb::session() {
  return std::make_unique<RocksDbSession>(*this);
}

}  // namespace

std::unique_ptr<Subject> open_rocksdb(const std::string& library, const std::string& directory,
                                      Durability durability, KeySchema schema) {
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_empty(directory, error))
    throw Refusal("--dir '" + directory +
                  "': is not an empty folder: --engine rocksdb takes one that is new or empty");
  return std::make_unique<RocksDb>(library, directory, durability, std::move(schema));
}

}  // namespace hotstore
