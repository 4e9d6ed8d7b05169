#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace vfpass {

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

  std::uint64_t bytes = 0;  ///< `<memory>`
  std::optional<std::uint64_t> hardLimit;
  bool hugepages = false;
  bool viommu = false;
  std::size_t foreignDevices = 0;  ///< host PCI devices that vfpass did not attach

  unsigned vcpus = 0;        ///< maximum
  unsigned onlineVcpus = 0;  ///< those present when the domain starts
  bool cpuElement = false;
  std::vector<CellFacts> cells;
  bool pinsVcpus = false;         ///< `<vcpupin>`, or `<vcpu cpuset=>`
  std::set<unsigned> pinnedCpus;  ///< host CPUs that any vCPU is pinned to
  bool placesMemory = false;      ///< `<numatune>` with a `<memory>` or a `<memnode>`
  std::set<unsigned> memoryNodes;
  bool automatic = false;  ///< numad places vCPUs or memory (placement='auto')

  std::string addressBitsMode;  ///< mode of `<maxphysaddr>`: passthrough, emulate; empty: none
  std::optional<unsigned> addressBits;         ///< with mode emulate
  std::optional<std::uint64_t> pciHole;        ///< `<pcihole64>` of pcie-root, in bytes
  std::optional<std::uint64_t> mmioMebibytes;  ///< OVMF's X-PciMmio64Mb on QEMU's command line
  std::set<std::string> cliqueAliases;         ///< devices with an x-nv-gpudirect-clique override
};

}  // namespace vfpass
