#include "vfpass/apply/tools.hpp"

#include <algorithm>

namespace vfpass::apply {

std::chrono::milliseconds Tools::remainingTimeout() const {
  using std::chrono::milliseconds;
  if (!deadline) {
    return lockTimeout;
  }
  const auto left =
      std::chrono::duration_cast<milliseconds>(*deadline - std::chrono::steady_clock::now());
  return std::clamp(left, milliseconds{0}, lockTimeout);
}

}  // namespace vfpass::apply
