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
  std::optional<dev_t> device;  ///< of a device file: its number, whatever its path
  bool isBlock = false;         ///< a block device's
};

/// What /proc says of one process.
struct Process {
  std::string id;                                 ///< its PID
  std::string name;                               ///< /proc/PID/comm, printable
  bool isRoot = false;                            ///< its effective user is root
  std::optional<std::uint64_t> networkNamespace;  ///< inode; nullopt: it ended meanwhile
  std::optional<std::uint64_t> mountNamespace;
  std::vector<OpenFile> files;
};

/// One walk over /proc.
struct ProcessList {
  std::vector<Process> processes;
  /// What could not be seen, for messages; empty: everything was.
  std::string blindSpot;
};

/// Every process with what it has open below /dev (but for terminals and the like), and the network
/// namespaces that it holds by a descriptor.
ProcessList readProcesses(const Root& root);

/// `nginx (pid 812)`: printable.
std::string describe(const Process& process);

/// Whether the process has one of these files open.
bool hasOpen(const Process& process, const std::vector<std::string>& files);

/// `8:1` of sysfs as the kernel's number; nullopt for anything else.
std::optional<dev_t> parseDeviceNumber(const std::string& text);

/// The inode in `net:[4026531840]`; nullopt for anything else. `kind` is `net` or `mnt`.
std::optional<std::uint64_t> namespaceInode(std::string_view link, std::string_view kind);

}  // namespace vfpass::host
