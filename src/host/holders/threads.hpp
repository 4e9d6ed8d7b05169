#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Namespaces of a thread; nullopt: it has ended.
struct Namespaces {
  std::optional<std::uint64_t> network;  ///< inode
  std::optional<std::uint64_t> mount;

  auto operator<=>(const Namespaces&) const = default;
};

/// Namespaces of /proc/`directory`: of a process's main thread (`812`), or of another thread
/// (`812/task/815`).
Namespaces readNamespaces(const Root& root, const std::string& directory);

/// A thread that has namespaces of its own.
struct OwnNamespaces {
  std::string directory;  ///< below /proc: `812/task/815`
  Namespaces namespaces;
};

/// What the threads of one process do not share with its main thread: a thread can have its own
/// descriptor table and namespaces (unshare(2)), and it can outlive the main thread, which then has
/// neither.
struct OwnOfThreads {
  /// Threads (their IDs) with a table that neither the main thread nor an earlier one has.
  std::vector<std::string> tables;
  std::vector<OwnNamespaces> namespaces;  ///< each combination once
};

/// Costs one system call for a process with a single thread.
OwnOfThreads readThreads(const Root& root, const std::string& process, const Namespaces& main);

/// The inode in `net:[4026531840]`; nullopt for anything else. `kind` is `net` or `mnt`.
std::optional<std::uint64_t> namespaceInode(std::string_view link, std::string_view kind);

}  // namespace vfpass::host
