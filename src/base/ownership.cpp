#include "vfpass/base/ownership.hpp"

#include <unistd.h>

#include "vfpass/base/shell.hpp"

namespace vfpass {

std::optional<Distrust> distrustOf(const struct stat& status, const std::string& path) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return Distrust{"expected owner root, found user ID " + std::to_string(status.st_uid),
                    "chown root " + shellArgument(path)};
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return Distrust{"writable by everyone", "chmod o-w " + shellArgument(path)};
  }
  if ((status.st_mode & S_IWGRP) != 0 && status.st_gid != 0) {
    return Distrust{"writable by group ID " + std::to_string(status.st_gid),
                    "chmod g-w " + shellArgument(path)};
  }
  return std::nullopt;
}

}  // namespace vfpass
