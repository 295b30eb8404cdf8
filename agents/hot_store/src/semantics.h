// Promise: DAQDB's semantics, one by one, on whatever engine a store is opened
// with. A row that fails says what it saw.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hot_store.h"

namespace hotstore {

struct Row {
  std::string id;
  std::string text;
  bool passed = false;
  bool applies = true;  // false: the store was opened without a second level
  std::string detail;
};

struct SemanticsOptions {
  unsigned consumers = 4;
  unsigned events = 200;
  double lease_s = 1;
  std::uint64_t seed = 1;
  bool second_level = false;
};

// `open` opens the same, at first empty, store again and again, with the schema
// it is given. Removes what it put.
std::vector<Row> check_semantics(const std::function<HotStore(const KeySchema&)>& open,
                                 const KeySchema& schema, const SemanticsOptions& options);

}  // namespace hotstore
