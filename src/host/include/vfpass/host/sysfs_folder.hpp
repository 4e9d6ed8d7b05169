#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// One open directory below a Root: reading ten files of a device resolves its long path once
/// instead of ten times. Names are relative (`class`, `net/eth0/ifindex`); in a captured tree links
/// in them are not followed. False when there is no such directory.
class Folder {
 public:
  Folder(const Root& root, const std::string& path);
  Folder(const Folder& parent, const std::string& name);

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(directory_); }

  /// The first 4096 bytes of a regular file, the maximum length of a sysfs attribute. Not trimmed.
  [[nodiscard]] std::optional<std::string> readText(const std::string& name) const;
  [[nodiscard]] std::optional<std::uint64_t> readNumber(const std::string& name) const;
  /// Up to `length` bytes starting at `offset`; fewer at the end of the file.
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
