#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// A device file or a network namespace that a process has open.
struct OpenFile {
  std::string descriptor;       ///< its name in /proc/PID/fd
  std::string target;           ///< `/dev/vfio/12`, `net:[4026531840]`; "(deleted)" is cut off
  std::optional<dev_t> device;  ///< number of a device file
  bool isBlock = false;         ///< the device file is a block device
};

/// The /proc data of one process.
struct Process {
  std::string id;                                 ///< its PID
  std::string name;                               ///< /proc/PID/comm, printable
  bool isRoot = false;                            ///< its effective user is root
  std::optional<std::uint64_t> networkNamespace;  ///< inode; nullopt: the process has ended
  std::optional<std::uint64_t> mountNamespace;
  std::vector<OpenFile> files;
  bool isZombie = false;  ///< it has ended, but its parent has not waited for it yet
};

/// All processes, from one scan of /proc.
struct ProcessList {
  std::vector<Process> processes;
  /// What could not be read, for messages; empty: everything was read.
  std::string blindSpot;
};

/// Every process with its open files below /dev (except terminals and the like) and its open
/// network namespaces.
ProcessList readProcesses(const Root& root);

/// `nginx (pid 812)`; printable.
std::string describe(const Process& process);

/// Whether the process has one of these files open.
bool hasOpen(const Process& process, const std::vector<std::string>& files);

/// Parses a device number as written by sysfs, such as `8:1`; nullopt for anything else.
std::optional<dev_t> parseDeviceNumber(const std::string& text);

/// The inode in `net:[4026531840]`; nullopt for anything else. `kind` is `net` or `mnt`.
std::optional<std::uint64_t> namespaceInode(std::string_view link, std::string_view kind);

}  // namespace vfpass::host
