#include "transfer/run_deadline.hpp"

#include <algorithm>

#include "vfpass/error.hpp"

namespace vfpass::probe {

std::chrono::milliseconds Deadline::left() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      end_ - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

void Deadline::check(const std::string& doing) const {
  if (left().count() == 0) {
    throw Error("deadline expired while " + doing,
                "use a longer --deadline, or fewer or smaller messages");
  }
}

}  // namespace vfpass::probe
