#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::doctor {

/// One `KEY{attribute}OPERATOR"value"` of a udev rule.
struct UdevToken {
  std::string key;       ///< with its attribute
  bool assigns = false;  ///< `=`, `+=`, `-=` or `:=`, not a comparison
  std::string value;
  std::size_t keyAt = 0;  ///< place in the rule
  std::size_t valueAt = 0;
};

/// The tokens of one rule, without its line breaks (udev(7)).
std::vector<UdevToken> udevTokens(std::string_view rule);

}  // namespace vfpass::doctor
