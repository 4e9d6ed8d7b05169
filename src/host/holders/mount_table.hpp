#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// One block device by the two names that the mount table uses.
struct MountSource {
  std::string number;  ///< major:minor
  std::string file;    ///< /dev/sda1
};

/// Where something is mounted.
struct MountPlace {
  std::string path;   ///< as the kernel writes it (a space is \040)
  std::string owner;  ///< a process of that mount namespace, described; empty: it is ours
};

/// A network namespace that is mounted, as `ip netns add` does it.
struct MountedNamespace {
  std::uint64_t inode = 0;
  std::string path;     ///< where, unescaped
  std::string process;  ///< PID, or `self`: /proc/PID/root leads to that mount namespace
};

/// What is mounted and what is swap, read once. At most 8 MiB of each table.
class MountTable {
 public:
  /// Our own mount namespace.
  explicit MountTable(const Root& root);
  /// And every other one that has a process.
  MountTable(const Root& root, const std::vector<Process>& processes);

  /// Ours first; a path that is mounted there is not named again for other namespaces.
  [[nodiscard]] std::vector<MountPlace> mountsOf(const MountSource& source) const;
  [[nodiscard]] std::vector<MountedNamespace> networkNamespaces() const;
  [[nodiscard]] bool isSwap(std::string_view file) const;
  /// False when a table is longer than what is read of it, or could not be read: a device may be in
  /// use all the same.
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
