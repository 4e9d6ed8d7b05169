#pragma once

#include <filesystem>
#include <string>

namespace vfpass {

/// Replaces the file by one with this content, readable by everybody, or leaves it as it is. A
/// symbolic link is replaced, not followed, and a reader never sees half of the content. Throws
/// Error.
void writeOutputFile(const std::filesystem::path& file, const std::string& content);

}  // namespace vfpass
