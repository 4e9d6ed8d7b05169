#include <algorithm>
#include <bit>

#include "setting_proposals.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/version.hpp"

namespace vfpass::settings {
namespace {

constexpr std::uint32_t displayClass = 0x03;

std::size_t numberOf(const Input& input, const Device& function) {
  return static_cast<std::size_t>(&function - input.topology.functions.data());
}

std::string nameOf(const GuestDevice& device) {
  return device.name + " (" + toString(device.function) + ")";
}

// QEMU refuses the property for any other device (vfio_add_nv_gpudirect_cap).
bool isNvidiaGpu(const Input& input, const GuestDevice& device) {
  const Device* function = functionOf(input, device);
  return function != nullptr && function->vendor == nvidia &&
         function->classCode >> 16U == displayClass;
}

// The driver assumes that the GPUs of a clique reach each other below the host bridges.
void checkPair(const Input& input, const GuestDevice& one, const GuestDevice& other,
               std::vector<Fault>& faults) {
  const auto distance = topology::distance(input.topology, numberOf(input, *functionOf(input, one)),
                                           numberOf(input, *functionOf(input, other)));
  if (distance == topology::Distance::pix || distance == topology::Distance::pxb) {
    return;
  }
  faults.push_back(
      {nameOf(one) + " and " + nameOf(other) + " share clique " + std::to_string(*one.clique) +
           ", but are at distance " + std::string(toString(distance)) +
           " on the host: peer-to-peer traffic between them would leave the PCIe switches",
       "use the same `clique:` number only for GPUs at distance PIX or PXB (see `vfpass topo`)"});
}

void checkDevice(const Input& input, const GuestDevice& device, std::vector<Fault>& faults) {
  if (!isNvidiaGpu(input, device)) {
    faults.push_back({nameOf(device) + " has `clique:`, but is not an NVIDIA GPU of this host",
                      "remove `clique:` from its entry"});
  }
}

std::string overrideElement(const GuestDevice& device) {
  return "<qemu:device alias='" + std::string(aliasPrefix) + device.name +
         "'><qemu:frontend><qemu:property name='x-nv-gpudirect-clique' type='unsigned' value='" +
         std::to_string(*device.clique) + "'/></qemu:frontend></qemu:device>";
}

void checkAll(const Input& input, const std::vector<GuestDevice>& members,
              std::vector<Fault>& faults) {
  for (const GuestDevice& device : members) {
    checkDevice(input, device, faults);
  }
  if (!faults.empty()) {
    return;
  }
  for (std::size_t one = 0; one < members.size(); ++one) {
    for (std::size_t other = one + 1; other < members.size(); ++other) {
      if (members[one].clique == members[other].clique) {
        checkPair(input, members[one], members[other], faults);
      }
    }
  }
}

}  // namespace

void proposeCliques(const Input& input, Proposal& proposal) {
  // The devices with `clique:`, and whether the request can be met.
  std::vector<GuestDevice> members;
  std::ranges::copy_if(input.devices, std::back_inserter(members),
                       [](const GuestDevice& device) { return device.clique.has_value(); });
  if (members.empty()) {
    return;
  }
  if (isOlder(input.versions.libvirt, {8, 2})) {
    proposal.faults.push_back({"`clique:` needs <qemu:override>, which libvirt " +
                                   versionText(input.versions.libvirt) + " does not have",
                               "use libvirt 8.2 or newer, or remove `clique:`"});
  }
  checkAll(input, members, proposal.faults);
  // One element for each device that has none of the administrator's.
  DomainEdit edit{"gpu-clique", EditPlace::qemuOverride, {}};
  std::vector<std::string> names;
  for (const GuestDevice& device : members) {
    const std::string alias = std::string(aliasPrefix) + device.name;
    if (input.domain.cliqueAliases.contains(alias)) {
      proposal.settings.push_back({"gpu-clique", "x-nv-gpudirect-clique of " + device.name,
                                   "the domain has an override of its own for " + alias,
                                   SettingStanding::administrators});
      continue;
    }
    edit.elements.push_back(overrideElement(device));
    names.push_back(device.name + " in clique " + std::to_string(*device.clique));
  }
  if (!edit.elements.empty() && proposal.faults.empty()) {
    std::string reason =
        "the mapping requests it: NVIDIA's driver does not recognize QEMU's switches and allows "
        "peer-to-peer only within a clique";
    reason += isOlder(input.versions.qemu, {8, 1})
                  ? "; QEMU " + versionText(input.versions.qemu) +
                        " refuses it for GPUs that use configuration space at 0xc8; 8.1 accepts it"
                  : "";
    proposal.settings.push_back({"gpu-clique", "x-nv-gpudirect-clique: " + join(names, ", "),
                                 reason, SettingStanding::proposed, edit});
  }
}

// GPUs of Grace and Vera hosts, whose memory is coherent with the CPUs'. Nobody could run them with
// vfpass, so that everything here is advice for the administrator.

namespace {

constexpr std::string_view coherentDriver = "nvgrace_gpu_vfio_pci";
constexpr const char* untested =
    "; vfpass does not apply this, because nobody could test it on such a host";

// NVIDIA's driver brings up GPU memory in up to eight nodes: one for each MIG instance, and one
// more (QEMU 9.0, hw/acpi/acpi_generic_initiator.c).
constexpr unsigned nodesPerGpu = 8;

// nvgrace-gpu shows GPU memory in BAR 2 only to VFIO, rounded up to a power of two; sysfs has no
// size. Today's GPUs have at most 288 GB.
constexpr std::uint64_t coherentBar = 512 * gibibyte;

// VIRT_HIGH_PCIE_MMIO of QEMU's virt machine; 10.0 has highmem-mmio-size for more.
constexpr std::uint64_t defaultArmWindow = 512 * gibibyte;

std::vector<GuestDevice> coherentGpus(const Input& input) {
  std::vector<GuestDevice> gpus;
  std::ranges::copy_if(input.devices, std::back_inserter(gpus), [&](const GuestDevice& device) {
    return isGpu(input, device) &&
           device.driver.value_or(functionOf(input, device)->vfioDriver) == coherentDriver;
  });
  return gpus;
}

std::string namesOf(const std::vector<GuestDevice>& gpus) {
  std::vector<std::string> names;
  std::ranges::transform(gpus, std::back_inserter(names), &GuestDevice::name);
  return join(names, ", ");
}

// What the installed versions lack; empty: nothing that is known.
std::string lacking(const Input& input, const Version& libvirt, const Version& qemu) {
  std::vector<std::string> texts;
  if (isOlder(input.versions.libvirt, libvirt)) {
    texts.push_back("libvirt " + versionText(libvirt) + " (this is " +
                    versionText(input.versions.libvirt) + ")");
  }
  if (isOlder(input.versions.qemu, qemu)) {
    texts.push_back("QEMU " + versionText(qemu) + " (this is " + versionText(input.versions.qemu) +
                    ")");
  }
  return texts.empty() ? "" : "; it needs " + join(texts, " and ");
}

unsigned firstFreeCell(const DomainFacts& domain) {
  unsigned next = 1;  // cell 0 has the guest's vCPUs, also if the domain does not say so yet
  for (const CellFacts& cell : domain.cells) {
    next = std::max(next, cell.id + 1);
  }
  return domain.emptyCells.empty() ? next : std::max(next, *domain.emptyCells.rbegin() + 1);
}

std::set<unsigned> memoryNodesOf(const DomainFacts& domain, const GuestDevice& gpu) {
  const auto found = domain.memoryCells.find(gpu.function);
  return found == domain.memoryCells.end() ? std::set<unsigned>() : found->second;
}

// Empty cells that no device has, as after the first half of the proposed change.
std::set<unsigned> unusedCells(const DomainFacts& domain) {
  std::set<unsigned> cells = domain.emptyCells;
  for (const auto& [function, nodes] : domain.memoryCells) {
    std::erase_if(cells, [&](unsigned id) { return nodes.contains(id); });
  }
  return cells;
}

/// What the GPUs lack of memory nodes.
struct MissingNodes {
  std::set<unsigned> cells;           ///< to be added
  std::vector<std::string> nodesets;  ///< to be written
};

// An unused cell, or else a new one after all others.
unsigned takeCell(const DomainFacts& domain, std::set<unsigned>& unused,
                  std::set<unsigned>& added) {
  if (!unused.empty()) {
    return unused.extract(unused.begin()).value();
  }
  const unsigned id = added.empty() ? firstFreeCell(domain) : *added.rbegin() + 1;
  added.insert(id);
  return id;
}

MissingNodes missingNodes(const DomainFacts& domain, const std::vector<GuestDevice>& gpus) {
  MissingNodes missing;
  std::set<unsigned> unused = unusedCells(domain);
  for (const GuestDevice& gpu : gpus) {
    std::set<unsigned> nodes = memoryNodesOf(domain, gpu);
    if (nodes.size() >= nodesPerGpu) {
      continue;
    }
    while (nodes.size() < nodesPerGpu) {
      nodes.insert(takeCell(domain, unused, missing.cells));
    }
    missing.nodesets.push_back("<acpi nodeset='" + formatNodeSet(nodes) +
                               "'/> in the <hostdev> of " + gpu.name);
  }
  return missing;
}

// The identifiers of new cells are consecutive.
std::string describeCells(const std::set<unsigned>& cells) {
  return cells.empty()
             ? ""
             : "<cell id='" + std::to_string(*cells.begin()) + "' memory='0' unit='KiB'/> to '" +
                   std::to_string(*cells.rbegin()) + "' in <numa>, and ";
}

void proposeMemoryNodes(const Input& input, const std::vector<GuestDevice>& gpus,
                        std::vector<DomainSetting>& settings) {
  const MissingNodes missing = missingNodes(input.domain, gpus);
  if (missing.nodesets.empty()) {
    return;
  }
  settings.push_back(
      {"memory-nodes", describeCells(missing.cells) + join(missing.nodesets, ", "),
       "the guest's driver brings up the coherent memory of a GPU in " +
           std::to_string(nodesPerGpu) + " NUMA nodes without memory that the ACPI tables assign " +
           "to it; without them the GPU can fail to initialize" +
           (input.domain.cells.empty() ? "; <numa> also needs a cell 0 with all vCPUs and memory"
                                       : "") +
           lacking(input, {11, 8}, {9, 0}) + untested,
       SettingStanding::manual});
}

// For the whole domain, or by the <driver iommufd='yes'/> of each GPU's own element.
bool useIommufd(const Input& input, const std::vector<GuestDevice>& gpus) {
  return input.backend == VfioBackend::iommufd ||
         std::ranges::all_of(gpus, [&](const GuestDevice& gpu) {
           const std::string function = " " + toString(gpu.function);
           return std::ranges::any_of(input.domain.iommufdDevices, [&](const std::string& device) {
             return device.ends_with(function);
           });
         });
}

// The domain has its SMMUs; plan::chooseBackend() takes iommufd for them unless it is told not to.
DomainSetting iommufdForSmmus() {
  return {"smmu", "iommufd for the domain's <iommu> with accel='on'",
          "an accelerated SMMUv3 works only with iommufd: remove `iommu-backend: container` from "
          "the mapping, or <iommufd enabled='no'/> from the domain",
          SettingStanding::manual};
}

DomainSetting smmuForEach(const Input& input, const std::vector<GuestDevice>& gpus, bool iommufd) {
  DomainSetting setting{"smmu",
                        "for each of " + namesOf(gpus) +
                            " a pcie-expander-bus of its own, and <iommu model='smmuv3'> with "
                            "<driver pciBus='...' accel='on'/>",
                        "the host has one SMMUv3 for each GPU's bus, and only an accelerated one "
                        "translates the guest's addresses without QEMU",
                        SettingStanding::manual};
  if (input.domain.viommu && input.domain.fastSmmus == 0) {
    setting.reason += "; the domain's own <iommu> is kept";
    setting.standing = SettingStanding::administrators;
  }
  setting.reason += iommufd ? "" : "; it works only with iommufd: set `iommu-backend: iommufd`";
  return setting;
}

void proposeSmmu(const Input& input, const std::vector<GuestDevice>& gpus,
                 std::vector<DomainSetting>& settings) {
  const bool complete = input.domain.fastSmmus >= gpus.size();
  const bool iommufd = useIommufd(input, gpus);
  if (complete && iommufd) {
    return;
  }
  DomainSetting setting = complete ? iommufdForSmmus() : smmuForEach(input, gpus, iommufd);
  // The oldest versions in which the form was seen (Debian testing).
  setting.reason += lacking(input, {12, 8}, {11, 1}) + untested;
  settings.push_back(setting);
}

void proposeArmHole(const Input& input, const std::vector<GuestDevice>& gpus,
                    std::vector<DomainSetting>& settings) {
  // The window of each port is a power of two: GPU memory and registers take twice the former.
  const std::uint64_t window = std::bit_ceil(2 * coherentBar * gpus.size());
  const std::uint64_t present = input.domain.pciHole.value_or(defaultArmWindow);
  if (present >= window) {
    return;
  }
  settings.push_back(
      {"pci-hole", "<pcihole64> of " + amount(window) + " on pcie-root",
       "the guest has " + amount(present) +
           " of 64-bit MMIO space; a GPU shows its memory as a "
           "BAR of up to " +
           amount(coherentBar) +
           " besides its registers, and sysfs does not "
           "have its size" +
           // libvirt 11.3 refuses the element outside q35; 12.8 is the oldest in which it was seen.
           lacking(input, {12, 8}, {10, 0}) + untested,
       input.domain.pciHole ? SettingStanding::administrators : SettingStanding::manual});
}

}  // namespace

void proposeCoherentGpus(const Input& input, std::vector<DomainSetting>& settings) {
  const std::vector<GuestDevice> gpus = coherentGpus(input);
  if (gpus.empty() || input.domain.architecture != "aarch64") {
    return;
  }
  if (!input.domain.machine.starts_with("virt")) {
    settings.push_back({"memory-nodes", "machine type virt",
                        "machine type " + printable(input.domain.machine) + " has no place for " +
                            namesOf(gpus) +
                            ": ACPI tables for memory nodes and an SMMUv3 exist "
                            "only on virt" +
                            untested,
                        SettingStanding::manual});
    return;
  }
  proposeMemoryNodes(input, gpus, settings);
  proposeSmmu(input, gpus, settings);
  proposeArmHole(input, gpus, settings);
}

}  // namespace vfpass::settings
