#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "problem_list.hpp"

namespace vfpass::config {

/// Whole text of a file that only root or the caller can have written: no link, a plain file, owned
/// by root or the effective user, not writable by others, at most 1 MiB. Anything else becomes a
/// problem of that file, and nullopt.
std::optional<std::string> readTrustedFile(const std::filesystem::path& file,
                                           ProblemList& problems);

/// The same rule for a folder: who can write there can replace its files. False: a problem was
/// reported.
bool checkTrustedFolder(const std::filesystem::path& folder, ProblemList& problems);

}  // namespace vfpass::config
