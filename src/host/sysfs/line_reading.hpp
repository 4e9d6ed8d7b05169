#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

enum class LinesRead {
  all,
  none,  ///< the file cannot be read
  some,  ///< `visit` returned false, or a line is longer than any line of the kernel
};

/// Calls `visit` for each line of a file of any length, without its newline, until it returns
/// false.
LinesRead eachLine(const Root& root, const std::string& path,
                   const std::function<bool(std::string_view line)>& visit);

}  // namespace vfpass::host
