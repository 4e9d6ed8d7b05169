#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace vfpass {

// Files that people keep, such as mappings. Both functions write a hidden file in the same
// directory, sync it and rename it, so that after a power failure too there is the whole content
// or what was there before. Both throw Error, with a remedy for missing rights and a full disk.

/// Creates the file, readable by everybody. Throws (bad input) if the name is taken.
void createDurably(const std::filesystem::path& file, const std::string& content);

/// Replaces the file by one with this content and the mode and owner in `original`.
void replaceDurably(const std::filesystem::path& file, const std::string& content,
                    const struct stat& original);

}  // namespace vfpass
