// Promise: how a result names what makes the program faster only where kernel, drive and limits allow it.
#pragma once

#include <string>

namespace daqwriter {

struct Feature {
  std::string name;
  bool in_use = false;
  std::string reason;  // why it is not in use; empty when it is
};

}  // namespace daqwriter
