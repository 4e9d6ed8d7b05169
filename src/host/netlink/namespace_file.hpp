#pragma once

#include <cstdint>
#include <string>

namespace vfpass::host {

/// For guarded children: these functions neither allocate memory nor throw.

/// A namespace file that is mounted in the mount namespace of a process.
struct NamespaceMount {
  std::string root;  ///< `/proc/80/root`
  std::string path;  ///< below it: `/run/netns/blue`
  /// The initial user namespace owns the mount namespace, so only root of the host mounts there.
  bool trusted = true;
};

/// Opens the network namespace with this inode; -1 with errno, which is ENOENT when the file is
/// gone or something else. Nothing else is ever opened for reading, because opening a device or a
/// pipe has side effects and can block.
int openNamespace(const char* file, std::uint64_t inode);
/// Never waits for a file system in a namespace that is not trusted: a file system of a user
/// (FUSE) need not answer. EAGAIN: it would have to.
int openNamespace(const NamespaceMount& mount, std::uint64_t inode);

/// Whether the initial user namespace owns this namespace: everything in it was made by root of
/// the host, or by someone to whom root gave the capability.
bool isOwnedByHost(int namespaceFile);

}  // namespace vfpass::host
