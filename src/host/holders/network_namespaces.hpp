#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holders/mount_table.hpp"
#include "holders/processes.hpp"

namespace vfpass::host {

/// A network namespace of this host.
struct NetworkNamespace {
  std::uint64_t inode = 0;
  bool ours = false;
  /// For messages, printable: `network namespace blue` (a name of `ip netns`), `the network
  /// namespace of nginx (pid 812)`, `a network namespace that containerd (pid 99) has open`.
  std::string description;
  /// A few files of processes for entering it, best first. Each may be gone or replaced by the time
  /// it is opened.
  std::vector<std::string> files;
  std::vector<NamespaceMount> mounts{};  ///< where it is mounted, tried after the files
};

/// Every network namespace that has a process, is mounted, or is open in a process. Ours,
/// identified by `ourInode`, comes first.
std::vector<NetworkNamespace> findNetworkNamespaces(const std::vector<Process>& processes,
                                                    const MountTable& mounts,
                                                    std::uint64_t ourInode);

}  // namespace vfpass::host
