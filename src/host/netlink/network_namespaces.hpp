#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vfpass::host {

class MountTable;
struct Process;

/// A namespace file that is mounted in the mount namespace of a process.
struct NamespaceMount {
  std::string root;  ///< `/proc/80/root`
  std::string path;  ///< below it: `/run/netns/blue`
  /// The initial user namespace owns the mount namespace, so only root of the host mounts there.
  bool trusted = true;
};

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

/// The functions below are for guarded children: they neither allocate memory nor throw.

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
