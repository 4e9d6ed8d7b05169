#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Marks a guarded child for as long as its call on a device is pending in the kernel, so that
/// every vfpass process can tell: by an anonymous file (memfd_create(2)) with the task's name,
/// which the child has open, and by the name itself (task_name.hpp). The name is for people and
/// makes the search cheap, but any user can run any program under it. Only root can create a file
/// of root in the file system of anonymous files. The mark ends with the child's call, whatever
/// becomes of the process that started it, of the run directory and of the child's PID.
/// For guarded children: does not allocate memory.
class CallMark {
 public:
  /// `name` is a taskName(); must outlive the mark.
  explicit CallMark(const char* name);
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;
  ~CallMark();

  /// errno: without a mark the call must not be made. 0: the mark is in place.
  [[nodiscard]] int error() const { return error_; }

 private:
  int file_ = -1;
  int error_ = 0;
};

/// The device on which this process has a marked call pending; nullopt: none. `name` is its task's
/// name.
std::optional<PciAddress> markedDevice(const Root& root, const std::string& process,
                                       std::string_view name);

}  // namespace vfpass::host
