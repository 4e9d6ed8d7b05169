#pragma once

#include <cstddef>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string_view>

namespace vfpass {

struct JsonLimits {
  std::size_t bytes;
  int levels;  ///< of objects and lists inside each other
  /// Members and elements in all. Each takes 16 bytes of memory or more, and two bytes of text.
  std::size_t values = std::numeric_limits<std::size_t>::max();
};

/// Why a text was refused, as a phrase for the caller's own error. Never quotes the text.
class JsonRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Parses JSON that another program wrote, or that may be damaged. Throws JsonRefused for a text
/// that exceeds the limits, has an object with a duplicate member, or is not JSON.
nlohmann::json parseBoundedJson(std::string_view text, const JsonLimits& limits);

}  // namespace vfpass
