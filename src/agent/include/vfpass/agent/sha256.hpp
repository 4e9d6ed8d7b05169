#pragma once

#include <string>
#include <string_view>

namespace vfpass::agent {

/// SHA-256 as 64 lower-case hexadecimal digits, as `sha256sum` prints it.
std::string sha256(std::string_view content);

}  // namespace vfpass::agent
