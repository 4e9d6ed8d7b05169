#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holders/open_files.hpp"
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

/// The /proc data of one process.
struct Process {
  std::string id;                                 ///< its PID
  std::string name;                               ///< /proc/PID/comm, printable
  std::optional<std::uint64_t> networkNamespace;  ///< inode; nullopt: the main thread has ended
  std::optional<std::uint64_t> mountNamespace;
  std::vector<OpenFile> files;           ///< of all threads
  std::vector<OwnNamespaces> threads{};  ///< threads in other namespaces than the main thread
};

/// All processes, from one scan of /proc.
struct ProcessList {
  std::vector<Process> processes;
  /// What this process may not see, for messages; empty: everything is visible.
  std::string blindSpot;
  /// The processes that have more descriptors than can be read in a reasonable time, for messages;
  /// empty: all were read. Any user can run such a process.
  std::string unread;
};

/// Time for reading tables of more than a few hundred descriptors, of all processes together.
inline constexpr std::chrono::milliseconds largeTablesTimeout{2000};

/// Every process with the device files (except terminals and the like) and network namespaces that
/// its threads have open, and with the namespaces of its threads.
ProcessList readProcesses(const Root& root, std::chrono::milliseconds timeout = largeTablesTimeout);

/// `nginx (pid 812)`; printable.
std::string describe(const Process& process);

/// Whether the process has one of these files open.
bool hasOpen(const Process& process, const std::vector<DeviceFile>& files);

}  // namespace vfpass::host
