#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/identifiers.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

/// In what way a device is held. A new kind needs a case in every table of
/// tests/unit/apply/holder_test.cpp.
enum class HolderKind {
  vfio,          ///< a process has its VFIO group or device open
  netdev,        ///< its netdev is up, enslaved, has addresses, or was moved to another namespace
  rdma,          ///< a process or a kernel module has a context, queue pair or memory region
  block,         ///< its block device is mounted, swap, or part of another device
  gpu,           ///< a process has the device file of this GPU or NVSwitch open
  pendingWrite,  ///< an earlier vfpass write to it still waits in the kernel
  unknown,       ///< the kernel does not tell who uses it
};

inline constexpr std::array holderKinds{
    HolderKind::vfio, HolderKind::netdev,       HolderKind::rdma,   HolderKind::block,
    HolderKind::gpu,  HolderKind::pendingWrite, HolderKind::unknown};

std::string_view toString(HolderKind kind);

/// Who has a device now, as the kernel says. Leases say who should have it; never who has it.
struct Holder {
  HolderKind kind = HolderKind::unknown;
  PciAddress device;
  /// A phrase that names the holder and how it holds the device, printable and bounded:
  /// `qemu-system-x86 (pid 4711) of domain train0 has it open through VFIO`.
  std::string description;
  /// What to do about it, an imperative without a full stop.
  std::string remedy;
  /// The libvirt domain whose QEMU process holds the device. Only set for processes that run QEMU
  /// with this UUID on its command line; a process chooses its command line itself, so this may
  /// excuse a holder from its own domain's steps but never serves as proof of anything else.
  std::optional<Uuid> domain;

  auto operator<=>(const Holder&) const = default;
};

}  // namespace vfpass
