#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace vfpass {

/// One `<cell>` of a guest, with where its memory lies (`<memnode>`; empty: not said).
struct CellFacts {
  unsigned id = 0;
  std::set<unsigned> vcpus;
  std::uint64_t bytes = 0;
  std::set<unsigned> hostNodes;
};

/// What a domain's XML says, without anything of ours, of what passed devices depend on beside the
/// devices themselves.
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
  std::size_t foreignDevices = 0;  ///< of the host's PCI devices, those that are not ours

  unsigned vcpus = 0;  ///< the most that it can have
  bool cpuElement = false;
  std::vector<CellFacts> cells;
  bool pinsVcpus = false;         ///< `<vcpupin>`, or `<vcpu cpuset=>`
  std::set<unsigned> pinnedCpus;  ///< host CPUs of all of these
  bool placesMemory = false;      ///< `<numatune>` with a `<memory>` or a `<memnode>`
  std::set<unsigned> memoryNodes;
  bool automatic = false;  ///< numad places vCPUs or memory (placement='auto')

  std::string addressBitsMode;           ///< of `<maxphysaddr>`: passthrough, emulate; empty: none
  std::optional<unsigned> addressBits;   ///< of mode emulate
  std::optional<std::uint64_t> pciHole;  ///< `<pcihole64>` of pcie-root, in bytes
  std::optional<std::uint64_t> mmioMebibytes;  ///< OVMF's X-PciMmio64Mb on QEMU's command line
  std::set<std::string> cliqueAliases;         ///< devices with an x-nv-gpudirect-clique override
};

}  // namespace vfpass
