#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace vfpass::state {

/// Injects faults between SQLite and the kernel (sqlite3_vfs.xSetSystemCall), so that SQLite sees a
/// real full disk or kill at any write; needs neither root nor a separate file system.
class SystemCallFaults {
 public:
  /// Called before every write of SQLite: 0 lets it pass, an errno value makes it fail. Offset -1
  /// is the current position of the descriptor.
  using OnWrite =
      std::function<int(int descriptor, const void* data, std::size_t size, off_t offset)>;
  /// Called before every open of SQLite.
  using OnOpen = std::function<int(const std::string& path, int flags)>;

  SystemCallFaults(OnWrite onWrite, OnOpen onOpen);
  SystemCallFaults(const SystemCallFaults&) = delete;
  SystemCallFaults& operator=(const SystemCallFaults&) = delete;
  ~SystemCallFaults();
};

}  // namespace vfpass::state
