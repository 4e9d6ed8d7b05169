#pragma once

#include <filesystem>

namespace vfpass::state {

/// Makes the folder with mode 0700 (parents with the usual mode) where it is missing, durably.
/// Refuses one that everybody may write to: its files decide which devices root gives away.
/// Returns its path without symbolic links.
std::filesystem::path makePrivateFolder(const std::filesystem::path& folder);

/// Makes an empty file with mode 0600, durably, unless something has that name already.
void makePrivateFile(const std::filesystem::path& file);

/// fsync of the folder itself, so that names made or changed in it survive a loss of power.
void syncFolder(const std::filesystem::path& folder);

}  // namespace vfpass::state
