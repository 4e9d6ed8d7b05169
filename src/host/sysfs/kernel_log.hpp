#pragma once

#include <string>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// What the kernel logs from now on: a driver often reports only there what it did not do.
/// Source: Documentation/ABI/testing/dev-kmsg; a position at the end sees only later records.
class KernelLog {
 public:
  explicit KernelLog(const Root& root);

  /// The messages about this function that were logged since the last call, without their prefix
  /// (driver, address); printable. Empty also where the log cannot be read: without CAP_SYSLOG or
  /// /dev/kmsg, as in a container or in vfpass-host.service.
  std::vector<std::string> messagesAbout(const PciAddress& function);

 private:
  FileDescriptor file_;
};

}  // namespace vfpass::host
