#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// One directory below a Root, found once: reading ten files of a device walks its long path once
/// instead of ten times. Names are relative (`class`, `net/eth0/ifindex`); in a captured tree no
/// link on the way is followed. False where there is no such directory.
class Folder {
 public:
  Folder(const Root& root, const std::string& path);
  Folder(const Folder& parent, const std::string& name);

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(directory_); }

  /// A regular file's first 4096 bytes, which is all that an attribute of sysfs can have. Not
  /// trimmed.
  [[nodiscard]] std::optional<std::string> readText(const std::string& name) const;
  [[nodiscard]] std::optional<std::uint64_t> readNumber(const std::string& name) const;
  /// Up to `length` bytes from `offset` on; shorter at the end of the file.
  [[nodiscard]] std::string readBytes(const std::string& name, std::size_t offset,
                                      std::size_t length) const;
  [[nodiscard]] std::vector<std::string> list(const std::string& name,
                                              std::string_view prefix = {}) const;
  [[nodiscard]] std::optional<std::string> linkTarget(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> linkName(const std::string& name) const;

 private:
  [[nodiscard]] FileDescriptor open(const std::string& name, int flags) const;

  FileDescriptor directory_;
  bool live_;
  Recording* recording_;
};

}  // namespace vfpass::host
