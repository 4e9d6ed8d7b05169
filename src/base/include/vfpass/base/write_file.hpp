#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace vfpass {

// Each function writes a hidden file in the same directory and renames it, so that a reader sees
// either the whole content or what was there before. Each throws Error.

// Files that people keep, such as mappings: synced, so that this holds after a power failure, too.
// The errors have a remedy for missing rights and a full disk.

/// Creates the file, readable by everybody. Throws (bad input) if the name is taken.
void createDurably(const std::filesystem::path& file, const std::string& content);

/// Replaces the file by one with this content and the mode and owner in `original`.
void replaceDurably(const std::filesystem::path& file, const std::string& content,
                    const struct stat& original);

/// Replaces the file by one with this content, readable by everybody. A symbolic link is replaced,
/// not followed. A device or pipe, also /dev/stdout, is written to and stays.
void writeOutputFile(const std::filesystem::path& file, const std::string& content);

/// Writes the names in this directory to disk: without it a power failure could lose the rename of
/// a file. No error: the file has its whole content already, and an error would say that it has
/// not.
void syncNames(const std::filesystem::path& folder);

}  // namespace vfpass
