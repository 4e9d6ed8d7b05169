#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/host/recording.hpp"

namespace vfpass::host {

/// A directory below which sysfs and procfs are looked for: `/`, or a captured tree. Paths are
/// relative (`sys/bus/pci/devices`). Below any root but `/`, links cannot lead out of it.
/// Devices vanish while they are read, so a missing file is an empty answer, not an error.
class Root {
 public:
  /// Throws Error when `path` is not a directory that can be opened.
  explicit Root(const std::filesystem::path& path = "/");

  /// The running system, as opposed to a captured tree.
  [[nodiscard]] bool isLive() const { return live_; }

  /// openat(2) below this root, with O_CLOEXEC. Without a descriptor errno says why.
  [[nodiscard]] FileDescriptor open(const std::string& path, int flags) const;

  /// A regular file's first `limit` bytes, without surrounding white space.
  [[nodiscard]] std::optional<std::string> readText(const std::string& path,
                                                    std::size_t limit = 4096) const;
  /// A regular file's content as an unsigned number: decimal, or hexadecimal after `0x`.
  [[nodiscard]] std::optional<std::uint64_t> readNumber(const std::string& path) const;
  /// Names in a directory that begin with `prefix`, sorted, without `.` and `..`; at most 65536.
  [[nodiscard]] std::vector<std::string> list(const std::string& path,
                                              std::string_view prefix = {}) const;
  /// What a symbolic link says.
  [[nodiscard]] std::optional<std::string> linkTarget(const std::string& path) const;
  /// The last component of what it says: sysfs names a driver, a group, a device that way.
  [[nodiscard]] std::optional<std::string> linkName(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;

  /// From now on everything that is read is noted there, too: `vfpass snapshot`. It must outlive
  /// this root, and every copy of its answers to `recording()`.
  void recordInto(Recording& recording) { recording_ = &recording; }
  [[nodiscard]] Recording* recording() const { return recording_; }

 private:
  FileDescriptor directory_;
  bool live_ = false;
  Recording* recording_ = nullptr;
};

/// Up to `length` bytes from `offset` on of an open file; shorter at its end or at an error.
std::string readBytes(int descriptor, std::size_t offset, std::size_t length);

}  // namespace vfpass::host
