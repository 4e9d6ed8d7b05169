#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

/// How a device is held. A new kind needs a case in every table of
/// tests/unit/apply/holder_test.cpp.
enum class HolderKind {
  vfio,          ///< a process has its VFIO group or device open
  netdev,        ///< its netdev is up, enslaved, has addresses, or was moved to another namespace
  rdma,          ///< a process or a kernel module has a context, queue pair or memory region
  block,         ///< its block device is mounted, swap, or part of another device
  gpu,           ///< a process has the device file of this GPU or NVSwitch open
  pendingWrite,  ///< an earlier vfpass write to it is still pending in the kernel
  unknown,       ///< cannot tell whether anything uses it
};

inline constexpr std::array holderKinds{
    HolderKind::vfio, HolderKind::netdev,       HolderKind::rdma,   HolderKind::block,
    HolderKind::gpu,  HolderKind::pendingWrite, HolderKind::unknown};

std::string_view toString(HolderKind kind);

/// A current user of a device, as reported by the kernel. A lease only records the intended owner.
struct Holder {
  HolderKind kind = HolderKind::unknown;
  PciAddress device;
  /// A phrase that names the holder and how it holds the device; printable, of bounded length:
  /// `qemu-system-x86 (pid 4711) of domain train0 has it open through VFIO`.
  std::string description;
  /// An imperative without a full stop.
  std::string remedy;
  /// The libvirt domain whose QEMU process holds the device. Only set for processes with this UUID
  /// on a QEMU command line. A process controls its own command line, so this may only exempt a
  /// holder from the steps of its own domain and proves nothing else.
  std::optional<Uuid> domain;

  auto operator<=>(const Holder&) const = default;
};

/// A domain or libvirt network whose definition names a VF, which need not run and which vfpass
/// need not know otherwise; or a network namespace with the VF's netdev.
struct DeviceUser {
  enum class Kind {
    domain,      ///< names the VF in its XML
    network,     ///< lists the VF in its pool
    pfsNetwork,  ///< assigns any VF of the PF
    elsewhere,   ///< a container, or another user of a network namespace that has its netdev
  };

  PciAddress device;
  Kind kind = Kind::domain;
  std::string name;

  bool operator==(const DeviceUser&) const = default;
};

}  // namespace vfpass
