#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// A device file or a network namespace that a process has open.
struct OpenFile {
  std::string descriptor;       ///< its link below /proc/PID: `fd/3`, `task/815/fd/3`
  std::string target;           ///< `/dev/vfio/12`, `net:[4026531840]`; "(deleted)" is cut off
  std::optional<dev_t> device;  ///< number of a device file; always known on the live system
  bool isBlock = false;         ///< the device file is a block device
};

/// A device file as the kernel knows it.
struct DeviceFile {
  std::string path;             ///< where udev creates it
  std::optional<dev_t> number;  ///< of a character device
};

/// Whether this is the same character device. The name only counts in a captured tree, which has
/// no numbers: a node can have any name, and any file can have the name of a device.
bool isSame(const OpenFile& open, const DeviceFile& file);

/// How much of a descriptor table to read.
struct ReadLimit {
  std::size_t descriptors = SIZE_MAX;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// The device files (except terminals and the like) and the network namespaces in the descriptor
/// tables of one process. A file is kept once, however many descriptors refer to it.
class OpenFiles {
 public:
  /// The same for all processes.
  struct Kind {
    bool live = false;                  ///< false: a captured tree, whose links lead out of it
    std::optional<dev_t> namespaces{};  ///< the file system of namespace files
  };
  static Kind readKind(bool live);

  explicit OpenFiles(const Kind& kind) : kind_(kind) {}

  enum class Result { complete, limited, forbidden };

  /// Reads a table; `name` is its directory below /proc/PID. `forbidden`: this process may list the
  /// descriptors but not see their files (ptrace(2), access mode checking). `limited`: the next
  /// call for this table continues after the descriptors that were read.
  Result read(FileDescriptor table, const std::string& name, const ReadLimit& limit);

  [[nodiscard]] const std::vector<OpenFile>& files() const { return files_; }

 private:
  Result addLive(int table, const char* descriptor, const std::string& name);
  void addDevice(const OpenFile& file, int table, const char* descriptor);
  void addNamespace(OpenFile file, std::uint64_t inode, int table, const char* descriptor);
  void addCaptured(int table, const char* descriptor, const std::string& name);

  Kind kind_;
  std::vector<OpenFile> files_;
  std::set<std::pair<bool, dev_t>> devices_;  // block device or not, number
  std::set<std::uint64_t> namespaces_;
  std::map<std::string, off_t> positions_;  // of tables that were not read completely
};

/// Parses a device number as written by sysfs, such as `8:1`; nullopt for anything else.
std::optional<dev_t> parseDeviceNumber(const std::string& text);

/// The number of the device file whose object in sysfs is this directory.
std::optional<dev_t> readDeviceNumber(const Root& root, const std::string& directory);

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
