#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace vfpass {

/// Why a file or directory is not trusted, and the command that changes it.
struct Distrust {
  std::string reason;
  std::string remedy;
};

/// One rule for all that decides what root does (configuration, state, locks): it belongs to root
/// or the effective user, and neither everybody nor a group other than root's can write to it.
/// nullopt: trusted. `path` is for the remedy only.
std::optional<Distrust> distrustOf(const struct stat& status, const std::string& path);

}  // namespace vfpass
