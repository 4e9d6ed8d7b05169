#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "problem_list.hpp"

namespace vfpass::config {

/// The text of a file that only root or the caller can have written: a regular file, not a symbolic
/// link, owned by root or the effective user, not writable by others, at most 1 MiB. Any other file
/// is reported as a problem and gives nullopt.
std::optional<std::string> readTrustedFile(const std::filesystem::path& file,
                                           ProblemList& problems);

/// The same rule for a directory, because anyone who can write to it can replace its files. Returns
/// false after reporting a problem.
bool checkTrustedFolder(const std::filesystem::path& folder, ProblemList& problems);

}  // namespace vfpass::config
