#pragma once

#include <string>
#include <string_view>

namespace vfpass::guest {

/// As `sha256sum` prints it: 64 lower-case hexadecimal digits.
std::string sha256(std::string_view content);

}  // namespace vfpass::guest
