#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// The messages of the kernel itself since this boot, as far as its buffer still has them, oldest
/// first, without priority and time: `mlx5_core 0000:01:00.0: text`. Only those that `isWanted`
/// accepts; processes can log to the same buffer, and theirs are left out. Not printable: devices
/// choose parts of them. nullopt if the log cannot be read: without CAP_SYSLOG where
/// kernel.dmesg_restrict is set, or without /dev/kmsg, as in a container.
std::optional<std::vector<std::string>> readKernelMessages(
    const Root& root, const std::function<bool(std::string_view)>& isWanted);

/// A line of a record of the kernel log.
struct KernelRecord {
  std::uint64_t sequence = 0;  ///< counts the records of this boot
  std::string_view text;       ///< kernelText(): empty unless the kernel itself wrote it
};

/// Calls `visit` for each line of the log that the kernel's buffer still has, oldest first, until
/// it returns false. False if the log cannot be read.
bool visitKernelLog(const Root& root, const std::function<bool(const KernelRecord&)>& visit);

/// What the kernel logs from now on: a driver often reports only there what it did not do.
/// Source: Documentation/ABI/testing/dev-kmsg; a position at the end sees only later records.
class KernelLog {
 public:
  explicit KernelLog(const Root& root);

  /// The messages about this function that were logged since the last call, without their prefix
  /// (driver, address); printable. See isComplete().
  std::vector<std::string> messagesAbout(const PciAddress& function);

  /// False if messages may be missing: the log cannot be read (without CAP_SYSLOG or /dev/kmsg, as
  /// in a container), or the kernel has overwritten some before they were read.
  [[nodiscard]] bool isComplete() const { return complete_; }

 private:
  FileDescriptor file_;
  bool complete_;
};

}  // namespace vfpass::host
