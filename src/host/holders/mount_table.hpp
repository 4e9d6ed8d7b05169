#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// One block device, by the two names used in the mount table.
struct MountSource {
  std::string number;  ///< major:minor
  std::string file;    ///< /dev/sda1
};

/// A mount point and its mount namespace.
struct MountPoint {
  std::string path;   ///< as written by the kernel (a space is \040)
  std::string owner;  ///< description of a process in that mount namespace; empty: our namespace
};

/// A mounted network namespace, as created by `ip netns add`.
struct MountedNamespace {
  std::uint64_t inode = 0;
  std::string path;     ///< mount point, unescaped
  std::string process;  ///< PID, or `self`: /proc/PID/root leads to that mount namespace
};

/// Mounts and swap areas, read once. At most 8 MiB of each table.
class MountTable {
 public:
  /// Reads our own mount namespace.
  explicit MountTable(const Root& root);
  /// Also reads every other mount namespace that has a process.
  MountTable(const Root& root, const std::vector<Process>& processes);

  /// Our mount namespace comes first; a path listed there is not repeated for other namespaces.
  [[nodiscard]] std::vector<MountPoint> mountsOf(const MountSource& source) const;
  [[nodiscard]] std::vector<MountedNamespace> networkNamespaces() const;
  [[nodiscard]] bool isSwap(std::string_view file) const;
  /// False when a table was truncated or could not be read: a device may be in use although no
  /// mount is found.
  [[nodiscard]] bool isComplete() const { return complete_; }

 private:
  struct Namespace {
    std::string process;
    std::string owner;
    std::vector<std::string> lines;
  };

  bool readNamespace(const Root& root, const std::string& process, const std::string& owner);

  bool complete_ = true;
  std::vector<Namespace> namespaces_;
  std::vector<std::string> swaps_;
};

}  // namespace vfpass::host
