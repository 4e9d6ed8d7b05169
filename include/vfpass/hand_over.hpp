#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {

/// A device that vfpass gives to no domain until an administrator releases it.
struct QuarantinedDevice {
  PciAddress device;
  std::string reason;  ///< a phrase: `its reset failed: ...`; may contain names from the kernel
  std::string since;   ///< UTC, ISO 8601
  /// Kernel::identityOf() of the device; empty: not known, so that only its address counts.
  std::string identity = {};
  /// What the host has by now, filled by apply::locate() and not stored: the identity of the device
  /// at this address, empty if it has none that can be read; and, if that is not the device, the
  /// other addresses with its identity.
  std::string found = {};
  std::vector<PciAddress> elsewhere = {};

  auto operator<=>(const QuarantinedDevice&) const = default;
};

/// Whether its address has another card than the one that went into quarantine.
[[nodiscard]] inline bool isReplaced(const QuarantinedDevice& device) {
  return !device.identity.empty() && !device.found.empty() && device.found != device.identity;
}

/// Kernel::identityOf() of a VF, from that of its PF: a VF that its plan creates does not exist yet
/// when its lease begins.
[[nodiscard]] inline std::string identityOfVf(const std::string& pf, unsigned index) {
  constexpr std::string_view function = " function ";
  const auto number = pf.find(function);
  const auto end = number == std::string::npos ? number : pf.find(' ', number + function.size());
  return end == std::string::npos
             ? std::string()
             : pf.substr(0, end) + " vf " + std::to_string(index) + pf.substr(end);
}

/// Whether a pattern that was written to a device's memory before a reset was there afterwards.
struct MemoryCheck {
  enum class Result { notChecked, gone, survived };
  Result result = Result::notChecked;
  std::string reason;  ///< why it was not checked

  auto operator<=>(const MemoryCheck&) const = default;
};

/// Whether vfpass may write to the memory of GPUs for that: `gpu-memory-check` in host.yaml, as
/// applied. Firmware can make an access that a device does not answer a fatal error of the host.
enum class MemoryChecks { off, on };

/// `gone`, `survived` or `not checked: REASON`, as recorded and reported.
[[nodiscard]] inline std::string toString(const MemoryCheck& check) {
  switch (check.result) {
    case MemoryCheck::Result::gone:
      return "gone";
    case MemoryCheck::Result::survived:
      return "survived";
    case MemoryCheck::Result::notChecked:
      break;
  }
  return "not checked: " + check.reason;
}

/// The last reset of a leased device since its guest had it.
struct ResetResult {
  std::string time;                  ///< UTC, ISO 8601
  std::vector<std::string> methods;  ///< the kernel's, in the order in which it tries them
  std::string failure;               ///< empty: the reset succeeded
  std::string memory = {};           ///< toString(MemoryCheck); empty: an earlier version wrote it

  auto operator<=>(const ResetResult&) const = default;
};

/// Errors of a device that AER (Advanced Error Reporting of PCI Express) has counted.
struct ErrorCounts {
  /// Uncorrectable ones of the device or its link, whatever their severity; unless it is a VF, also
  /// those that the port above it has seen.
  std::uint64_t hardware = 0;
  /// Other uncorrectable ones: a guest can cause them, such as completion timeouts and unsupported
  /// requests.
  std::uint64_t others = 0;
  std::uint64_t corrected = 0;

  auto operator<=>(const ErrorCounts&) const = default;
};

/// An Xid of NVIDIA's driver, which is its number for a kind of error.
struct Xid {
  std::uint64_t sequence = 0;  ///< of its record in the kernel log
  unsigned number = 0;

  auto operator<=>(const Xid&) const = default;
};

/// What the kernel log of this boot has of a GPU of NVIDIA.
struct XidLog {
  bool readable = false;
  std::uint64_t first = 0;  ///< sequence number of the oldest record that the log still has
  std::uint64_t next = 0;   ///< the one that the next record will have
  std::vector<Xid> xids;    ///< only those that mean a fault of the hardware, oldest first
};

/// The point from which on errors of a device are those of its lease.
struct UseBegin {
  std::string bootId;
  std::optional<ErrorCounts> errors;            ///< counted by then; empty: not observable
  std::optional<std::uint64_t> logRecord = {};  ///< XidLog::next; empty: not read

  auto operator<=>(const UseBegin&) const = default;
};

/// What is known of a device since a domain leased it.
struct DeviceUse {
  PciAddress device;
  Uuid domain;
  std::optional<UseBegin> began;     ///< empty: an earlier version recorded the lease
  std::optional<ResetResult> reset;  ///< empty: not reset since its guest last had it
  /// Kernel::identityOf(), from before a guest could make it unreadable; empty: not known.
  std::string identity = {};

  auto operator<=>(const DeviceUse&) const = default;
};

/// The state of a device at the end of its lease.
struct HandOverRecord {
  std::string time;  ///< UTC, ISO 8601
  Uuid domain;
  std::string domainName;
  std::string entry;
  std::uint64_t generation = 0;
  PciAddress device;
  std::string identity;                 ///< Kernel::identityOf(); empty: not known
  std::optional<ResetResult> reset;     ///< empty: not since its guest last had it
  std::optional<VfSettings> settings;   ///< of a VF, as read back; empty: not observable
  std::vector<std::string> notNeutral;  ///< names of attributes that others can find changed
  std::string firmware;                 ///< empty: not observable
  std::vector<std::string> errors;      ///< since the lease began
  std::vector<std::string> unobserved;  ///< what could not be looked for, with the reason
  std::string quarantine;               ///< why the device is in quarantine; empty: it is not

  auto operator<=>(const HandOverRecord&) const = default;
};

}  // namespace vfpass
