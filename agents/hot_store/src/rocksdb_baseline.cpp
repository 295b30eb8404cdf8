#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "base/status.h"
#include "baselines.h"
#include "lmdb_engine.h"

namespace hotstore {
namespace {

using daqwriter::Failure;
using daqwriter::Refusal;
namespace fs = std::filesystem;

void* load(const std::string& library) {
  if (void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  throw Refusal("--engine rocksdb: the library cannot be loaded: " + std::string(dlerror()) +
                ": install it (Debian: librocksdb7.8), or name it by --rocksdb-library");
}

// RocksDB's C interface (rocksdb/c.h), as far as we use it. It has been
// the same since version 5.
struct Api {
  explicit Api(const std::string& library) : library_(library), handle_(load(library)) {}

 private:
  // Converts to a function of the type that it initialises.
  struct Symbol {
    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
    void* address;
  };
  Symbol find(const char* name) const;

  std::string library_;
  void* handle_;  // never unloaded: RocksDB has threads of its own that outlive a database

 public:
  void* (*options_create)() = find("options_create");
  void (*options_destroy)(void*) = find("options_destroy");
  void (*options_set_create_if_missing)(void*, unsigned char) = find("options_set_create_if_missing");
  void (*options_set_error_if_exists)(void*, unsigned char) = find("options_set_error_if_exists");
  void (*options_set_manual_wal_flush)(void*, unsigned char) = find("options_set_manual_wal_flush");
  void* (*writeoptions_create)() = find("writeoptions_create");
  void (*writeoptions_destroy)(void*) = find("writeoptions_destroy");
  void (*writeoptions_set_sync)(void*, unsigned char) = find("writeoptions_set_sync");
  void (*writeoptions_disable_WAL)(void*, int) = find("writeoptions_disable_WAL");
  void* (*readoptions_create)() = find("readoptions_create");
  void (*readoptions_destroy)(void*) = find("readoptions_destroy");
  void* (*open)(const void*, const char*, char**) = find("open");
  void (*close)(void*) = find("close");
  void (*put)(void*, const void*, const char*, std::size_t, const char*, std::size_t, char**) = find("put");
  void (*remove)(void*, const void*, const char*, std::size_t, char**) = find("delete");
  void* (*get_pinned)(void*, const void*, const char*, std::size_t, char**) = find("get_pinned");
  const char* (*pinnableslice_value)(const void*, std::size_t*) = find("pinnableslice_value");
  void (*pinnableslice_destroy)(void*) = find("pinnableslice_destroy");
  void (*free)(void*) = find("free");
};

Api::Symbol Api::find(const char* name) const {
  const std::string symbol = std::string("rocksdb_") + name;
  void* const address = dlsym(handle_, symbol.c_str());
  if (address) return {address};
  throw Refusal("--rocksdb-library '" + library_ + "': is not RocksDB, it has no " + symbol +
                ": give the file of librocksdb");
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

  std::unique_ptr<Session> session() override { return std::make_unique<DirectSession<RocksDb>>(*this); }
  std::string promise() const override { return promise_of(durability_); }

  Answer put(const Key& key, View value, Level /*level*/) {
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
