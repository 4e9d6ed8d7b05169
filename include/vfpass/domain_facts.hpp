#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

/// A host PCI function that a domain's XML refers to (`<hostdev>`, `<interface type='hostdev'>`).
struct Claim {
  PciAddress device;
  std::string alias;        ///< empty: none
  PciAddress guestAddress;  ///< zero: none

  auto operator<=>(const Claim&) const = default;
};

/// The facts that vfpass needs about every domain of the host.
struct DomainSummary {
  Uuid uuid;
  std::string name;
  bool active = false;
  bool persistent = false;
  std::vector<Claim> claims;             ///< in the persistent or the live XML
  std::vector<Claim> liveClaims;         ///< in the live XML: devices of the running domain
  std::vector<MacAddress> macAddresses;  ///< in all `<interface>` elements and in sealed metadata

  auto operator<=>(const DomainSummary&) const = default;
};

/// An `<interface>` of a domain's XML.
struct DomainInterface {
  std::string alias;              ///< empty: none
  std::optional<MacAddress> mac;  ///< libvirt generates one for every interface that it stores
  std::string model;              ///< `virtio`; empty: libvirt's default
  std::string teaming;            ///< `persistent`, `transient`; empty: none

  auto operator<=>(const DomainInterface&) const = default;
};

/// A `<hostdev>` or `<interface type='hostdev'>` that vfpass did not create.
struct HostElement {
  PciAddress device;
  bool interface = false;
  bool managed = false;                    ///< libvirt binds the driver
  std::optional<MacAddress> mac;           ///< of an `<interface>`
  std::optional<std::uint16_t> vlan;       ///< of an `<interface>`; 0: unreadable, or a trunk
  std::string partner;                     ///< of `<teaming>`: the alias; empty: none
  std::optional<PciAddress> guestAddress;  ///< PCI address in the guest
  std::string text;                        ///< byte for byte

  auto operator<=>(const HostElement&) const = default;
};

/// The host PCI functions that a libvirt network assigns to its domains: the listed functions, and
/// all VFs of the PFs with these netdevs.
struct NetworkPool {
  std::string network;
  std::vector<PciAddress> devices;
  std::vector<std::string> pfNetdevs;

  bool operator==(const NetworkPool&) const = default;
};

/// The domains and network pools that libvirt has defined, whether they are active or not.
struct Definitions {
  std::vector<DomainSummary> domains;
  std::vector<NetworkPool> pools;
  std::vector<std::string> unknown;  ///< may name further devices: `domain train0`

  bool operator==(const Definitions&) const = default;
};

/// The settings in a domain's XML that determine how much memory VFIO pins.
struct GuestMemory {
  std::string domain;                      ///< its name
  std::uint64_t bytes = 0;                 ///< `<memory>`
  std::optional<std::uint64_t> hardLimit;  ///< `<hard_limit>`, in bytes
  bool viommu = false;                     ///< `<iommu>`: each device then maps all of it
  std::size_t devices = 0;                 ///< number of host PCI devices
  std::string launchSecurity = {};         ///< type of `<launchSecurity>`; empty: none
};

/// One `<cell>` of a guest and the host nodes of its memory (`<memnode>`; empty: unspecified).
struct CellFacts {
  unsigned id = 0;
  std::set<unsigned> vcpus;
  std::uint64_t bytes = 0;
  std::set<unsigned> hostNodes;
};

/// The settings in a domain's XML that passthrough devices depend on, other than the devices
/// themselves. Elements that vfpass added are ignored.
struct DomainFacts {
  std::string name;
  bool emulated = false;  ///< type qemu: no KVM
  std::string architecture;
  std::string machine;
  bool pcieRoot = false;  ///< has a pcie-root controller: q35, virt
  bool uefi = false;
  std::string launchSecurity;   ///< type of `<launchSecurity>`; empty: none
  std::optional<bool> iommufd;  ///< `<iommufd enabled=>`; nullopt: none
  /// The host's devices that use iommufd, whatever `iommufd` says: `<hostdev> 0000:3b:00.1`, or
  /// `vfio-pci 0000:3b:00.1` of `<qemu:commandline>`.
  std::vector<std::string> iommufdDevices;

  std::uint64_t bytes = 0;  ///< `<memory>`
  std::optional<std::uint64_t> hardLimit;
  bool hugepages = false;
  bool viommu = false;
  std::size_t foreignDevices = 0;            ///< host PCI devices that vfpass did not attach
  std::vector<PciAddress> foreignFunctions;  ///< those of them whose host address is readable

  unsigned vcpus = 0;        ///< maximum
  unsigned onlineVcpus = 0;  ///< those present when the domain starts
  bool cpuElement = false;
  std::vector<CellFacts> cells;   ///< those with vCPUs or memory
  std::set<unsigned> emptyCells;  ///< those without: memory nodes of GPUs
  /// Cells in the `<acpi nodeset=>` of a device, by its host function; zero: it has none.
  std::map<PciAddress, std::set<unsigned>> memoryCells;
  std::size_t fastSmmus = 0;      ///< `<iommu model='smmuv3'>` with accel='on'
  bool pinsVcpus = false;         ///< `<vcpupin>`, or `<vcpu cpuset=>`
  bool pinsAllVcpus = false;      ///< no vCPU may run anywhere
  std::set<unsigned> pinnedCpus;  ///< host CPUs that any vCPU is pinned to
  bool placesMemory = false;      ///< `<numatune>` with a `<memory>` or a `<memnode>`
  std::set<unsigned> memoryNodes;
  bool automatic = false;  ///< numad places vCPUs or memory (placement='auto')

  std::string addressBitsMode;  ///< mode of `<maxphysaddr>`: passthrough, emulate; empty: none
  std::optional<unsigned> addressBits;         ///< with mode emulate
  std::optional<std::uint64_t> pciHole;        ///< `<pcihole64>` of pcie-root, in bytes
  std::optional<std::uint64_t> mmioMebibytes;  ///< OVMF's X-PciMmio64Mb on QEMU's command line
  std::set<std::string> cliqueAliases;         ///< devices with an x-nv-gpudirect-clique override
  std::set<std::string> linkAliases;           ///< devices with an x-speed or x-width override
};

/// `Claim::alias` of a device in `<qemu:commandline>`. No alias of libvirt has a colon.
inline constexpr std::string_view argumentsAlias = "qemu:commandline";

}  // namespace vfpass
