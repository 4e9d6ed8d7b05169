#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "vfpass/settings/propose_settings.hpp"

namespace vfpass::settings {

inline constexpr std::uint64_t kibibyte = 1ULL << 10U;
inline constexpr std::uint64_t mebibyte = 1ULL << 20U;
inline constexpr std::uint64_t gibibyte = 1ULL << 30U;
inline constexpr std::uint64_t tebibyte = 1ULL << 40U;

/// The device's host function; nullptr if the host has none at that address.
const Device* functionOf(const Input& input, const GuestDevice& device);

/// Memory BARs that the device has in the guest.
std::vector<MemoryBar> barsOf(const Input& input, const GuestDevice& device);

bool isGpu(const Input& input, const GuestDevice& device);
bool hasGpus(const Input& input);

/// In the largest binary unit that divides it, such as `256 GiB`; `0 bytes` for 0.
std::string amount(std::uint64_t bytes);

/// `<name unit='KiB'>N</name>`, as libvirt formats amounts.
std::string kibibyteElement(const std::string& name, std::uint64_t bytes);

/// The default physical address bits of a guest CPU (QEMU's phys-bits).
inline constexpr unsigned defaultBits = 40;

/// The physical address space that the devices need in the guest.
struct AddressNeeds {
  std::uint64_t bars = 0;    ///< sum of the 64-bit BARs
  std::uint64_t window = 0;  ///< a power of two that fits them behind their ports
  std::uint64_t end = 0;     ///< of the window, which lies above RAM
  unsigned bits = 0;         ///< physical address bits for all of it
};

AddressNeeds addressNeeds(const Input& input);

/// A cell of the guest and the host node that it should be on.
struct PlacedCell {
  unsigned id = 0;
  int node = 0;
  std::set<unsigned> vcpus;
  std::uint64_t bytes = 0;
};

/// The placement of the guest's vCPUs and memory next to its devices.
struct Placement {
  std::set<unsigned> deviceNodes;  ///< host nodes that devices sit on
  std::vector<PlacedCell> cells;   ///< empty: the devices imply no placement
  bool guestHasCells = false;      ///< before any change
  bool needsCells = false;         ///< devices on several nodes, and the guest has no cells
  std::string obstacle;            ///< why there is no placement; empty if there is one
};

Placement choosePlacement(const Input& input);

/// Guest memory by host node.
std::map<int, std::uint64_t> bytesByNode(const Placement& placement);

// One function for each group of settings; each adds the settings that the domain lacks.

/// `hard-limit`
void proposeHardLimit(const Input& input, std::vector<DomainSetting>& settings);

/// `guest-address-bits`, `firmware-window`, `pci-hole`
void proposeAddressSpace(const Input& input, std::vector<DomainSetting>& settings);

/// `firmware`
void proposeFirmware(const Input& input, std::vector<DomainSetting>& settings);

/// `large-bars`
void proposeLargeBars(const Input& input, std::vector<DomainSetting>& settings);

/// `guest-cells`, `memory-placement`, `vcpu-placement`
void proposePlacement(const Input& input, const Placement& placement,
                      std::vector<DomainSetting>& settings);

/// `hugepages`
void proposeHugePages(const Input& input, const Placement& placement,
                      std::vector<DomainSetting>& settings);

/// `memory-nodes`, `smmu`, `pci-hole` of an aarch64 guest with Grace GPUs. None has an edit: nobody
/// could test them.
void proposeCoherentGpus(const Input& input, std::vector<DomainSetting>& settings);

/// `gpu-clique`
void proposeCliques(const Input& input, Proposal& proposal);

}  // namespace vfpass::settings
