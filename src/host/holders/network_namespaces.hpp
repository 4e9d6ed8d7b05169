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
  /// Files by which it can be entered, best first, a few: any of them may be gone by then, or be
  /// another file.
  std::vector<std::string> files;
};

/// Every one that a process lives in, that is mounted somewhere, or that a process has open. Ours,
/// by its inode, comes first.
std::vector<NetworkNamespace> findNetworkNamespaces(const std::vector<Process>& processes,
                                                    const MountTable& mounts,
                                                    std::uint64_t ourInode);

}  // namespace vfpass::host
