#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holders/open_files.hpp"
#include "holders/threads.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

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
