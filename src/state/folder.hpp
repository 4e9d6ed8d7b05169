#pragma once

#include <sys/stat.h>

#include <filesystem>

namespace vfpass::state {

/// Makes the folder with mode 0700 (parents with the usual mode) where it is missing, durably.
/// Refuses what requireTrustedFolder() refuses. Returns its path without symbolic links.
std::filesystem::path makePrivateFolder(const std::filesystem::path& folder);

/// Throws Error (badInput) unless the rule of vfpass/base/ownership.hpp trusts it: the files of
/// these directories decide which devices root gives away.
void requireTrusted(const std::filesystem::path& path, const struct stat& status);

/// The same for a directory. Refuses a symbolic link in its place, also one that leads to a good
/// directory; links above it are allowed.
void requireTrustedFolder(const std::filesystem::path& folder);

/// The same for a plain file; one that does not exist is fine. Does not open it: closing any
/// descriptor of a database drops SQLite's locks on it.
void requireTrustedFile(const std::filesystem::path& file);

/// Makes an empty file with mode 0600, durably, unless something has that name already.
void makePrivateFile(const std::filesystem::path& file);

/// fsync of the folder itself, so that names made or changed in it survive a loss of power.
void syncFolder(const std::filesystem::path& folder);

}  // namespace vfpass::state
