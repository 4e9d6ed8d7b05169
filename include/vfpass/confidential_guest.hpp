#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfpass {

/// Whether guests with this type of `<launchSecurity>` have their private memory in a guest_memfd,
/// apart from the memory that they share with devices and that QEMU allocates as configured (QEMU,
/// docs/system/guest-memfd.rst).
constexpr bool hasGuestMemfd(std::string_view type) { return type == "sev-snp" || type == "tdx"; }

/// Whether all DMA of such a guest goes through memory that it shares (swiotlb). Linux then maps no
/// BAR of another device in the guest, whatever VFIO maps on the host.
constexpr bool bouncesDma(std::string_view type) { return type == "sev" || hasGuestMemfd(type); }

/// How far a confidential guest can use the host's devices.
enum class ConfidentialVerdict { possible, limited, impossible, unknown };

/// One use of the host's devices by a confidential guest.
struct ConfidentialUse {
  std::string use;  ///< `start`, `DMA mappings`, `RDMA`, `GPUDirect RDMA`
  ConfidentialVerdict verdict = ConfidentialVerdict::possible;
  std::string reason;
  std::string remedy = {};  ///< empty when possible
};

/// What a guest with `<launchSecurity>` can do with the host's devices: its memory is private, and
/// a device without TDISP reaches only the part that the guest shares.
struct ConfidentialGuest {
  std::string type;  ///< of `<launchSecurity>`: `sev`, `sev-snp`, `tdx`, `s390-pv`, as in the XML
  std::vector<ConfidentialUse> uses;
};

}  // namespace vfpass
