#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "holders/processes.hpp"
#include "netlink/network_namespaces.hpp"
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
  NamespaceMount mount;  ///< its path is unescaped
  bool ours = false;     ///< mounted in our own mount namespace
};

/// Time for the mount tables of namespaces that users own, all together.
inline constexpr std::chrono::milliseconds userMountsTimeout{2000};

/// Mounts of disks and network namespaces, and swap areas, read once. Tables may have any length:
/// only what can be asked for is kept, a few mount points for each device and namespace.
///
/// A mount's device number is the kernel's and cannot be chosen. Its source can: every user can
/// mount a tmpfs "from" /dev/sda1 in a namespace of their own, and with fusermount also in ours. It
/// only counts where the device number is anonymous, and root of the host or the kernel chose it.
class MountTable {
 public:
  /// Reads our own mount namespace.
  explicit MountTable(const Root& root);
  /// Also reads every other mount namespace that has a thread: first those that belong to the
  /// host, then those of users, until the timeout.
  MountTable(const Root& root, const std::vector<Process>& processes,
             std::chrono::milliseconds timeout = userMountsTimeout);

  /// At most 16 for each name. Our mount namespace comes first; a path listed there is not repeated
  /// for other namespaces.
  [[nodiscard]] std::vector<MountPoint> mountsOf(const MountSource& source) const;
  [[nodiscard]] const std::vector<MountedNamespace>& networkNamespaces() const {
    return networkNamespaces_;
  }
  [[nodiscard]] bool isSwap(std::string_view file) const;
  /// False when a table could not be read, or not in time: a device may be in use although no mount
  /// is found.
  [[nodiscard]] bool isComplete() const { return complete_; }

 private:
  // A thread in a mount namespace, by its directory below /proc.
  struct Thread {
    std::string directory;
    const Process* process;
  };
  struct Viewer {
    std::string directory;
    std::string owner;  // empty: our namespace
    bool trusted = true;
  };
  using Viewers = std::vector<Thread>;
  using Deadline = std::chrono::steady_clock::time_point;

  void readNamespaces(const Root& root, const std::map<std::uint64_t, Viewers>& viewers,
                      bool trusted, Deadline deadline);
  bool readNamespace(const Root& root, const Viewer& viewer, Deadline deadline);
  void addLine(const Viewer& viewer, std::string_view line);
  void addSources(const Viewer& viewer, std::string_view source, std::string_view path);
  void addMount(std::string_view device, const Viewer& viewer, std::string_view path);

  bool complete_ = true;
  std::map<std::string, std::vector<MountPoint>, std::less<>> mounts_;  // by number or file
  std::vector<MountedNamespace> networkNamespaces_;
  std::map<std::uint64_t, unsigned> mountCounts_;  // by inode of the network namespace
  std::vector<std::string> swaps_;
};

}  // namespace vfpass::host
