#pragma once

#include <filesystem>
#include <string>

namespace vfpass {

/// A file that belongs to the running program, such as `vfpass-probe`: below the program's prefix,
/// wherever that is, or in its build directory; otherwise at the path that the build was configured
/// with. No environment variable changes the result.
std::filesystem::path programFile(const std::string& name);

}  // namespace vfpass
