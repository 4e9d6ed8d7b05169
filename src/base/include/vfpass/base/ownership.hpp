#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace vfpass {

/// The reason why a file or directory is not trusted, and a command that resolves it.
struct Distrust {
  std::string reason;
  std::string remedy;
};

/// Applies one rule to all files that determine the actions of root (configuration, state, locks):
/// owned by root or the effective user, and writable neither by others nor by a group other than
/// root's. nullopt: trusted. `path` is used in the remedy only.
std::optional<Distrust> distrustOf(const struct stat& status, const std::string& path);

}  // namespace vfpass
