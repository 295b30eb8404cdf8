// Promise: completes every request at once without touching any medium: what remains is the program's own
// cost.
#pragma once

#include <algorithm>
#include <deque>

#include "io/io_engine.h"

namespace daqwriter {

class NullEngine : public IoEngine {
 public:
  std::string_view name() const override { return "null"; }
  int submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests)
      done_.push_back({request.tag, static_cast<std::int64_t>(bytes_of(request.pieces))});
    return static_cast<int>(requests.size());
  }
  int reap(std::span<IoCompletion> out, unsigned, std::int64_t) override {
    const std::size_t count = std::min(out.size(), done_.size());
    std::copy_n(done_.begin(), count, out.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return static_cast<int>(count);
  }

 private:
  std::deque<IoCompletion> done_;
};

}  // namespace daqwriter
