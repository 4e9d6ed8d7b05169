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

}  // namespace vfpass::host
