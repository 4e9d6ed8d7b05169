#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace vfpass::state {

/// Puts faults between SQLite and the kernel (sqlite3_vfs.xSetSystemCall), so that a full disk or a
/// kill at any write is real to SQLite and needs neither root nor a file system of its own.
class SystemCallFaults {
 public:
  /// Decides before every write of SQLite's: 0 lets it through, an errno value fails it. Offset -1
  /// is the descriptor's own position.
  using OnWrite =
      std::function<int(int descriptor, const void* data, std::size_t size, off_t offset)>;
  /// Decides before every open of SQLite's.
  using OnOpen = std::function<int(const std::string& path, int flags)>;

  SystemCallFaults(OnWrite onWrite, OnOpen onOpen);
  SystemCallFaults(const SystemCallFaults&) = delete;
  SystemCallFaults& operator=(const SystemCallFaults&) = delete;
  ~SystemCallFaults();
};

}  // namespace vfpass::state
