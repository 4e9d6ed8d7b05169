#include "vfpass/plan/check_device.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/version.hpp"

namespace vfpass::plan {
namespace {

std::string nameOf(const Device& function) { return "PCI function " + toString(function.address); }

std::string nameOf(const VirtualFunction& vf) {
  return "VF " + std::to_string(vf.index) + " (" + toString(vf.address) + ")";
}

// DEVLINK_PORT_FN_CAP_MIGRATABLE (include/uapi/linux/devlink.h).
constexpr Version kernelWithMigratable{6, 2};
// `<driver model=>` of a <hostdev> (libvirt's NEWS.rst, 10.0.0).
constexpr Version libvirtWithModel{10, 0};
// Protocol v2 since 8.0, but only with x-enable-migration=on; by default since 8.1
// (vfio_migration_realize).
constexpr Version qemuWithMigration{8, 1};

constexpr const char* migrationKey = "`migration: vfio`";

void requireVersion(const std::string& product, const std::optional<Version>& found,
                    const Version& needed, const std::string& reason,
                    std::vector<Objection>& objections) {
  if (isOlder(found, needed)) {
    const std::string wanted = product + " " + versionText(needed) + " or newer";
    objections.push_back({std::string(migrationKey) + " needs " + wanted + ", which " + reason +
                              "; this host has " + product + " " + versionText(found),
                          "install " + wanted + ", or use `teaming:` instead"});
  }
}

}  // namespace

std::vector<PciAddress> namedFunctions(const std::vector<Lease>& leases,
                                       const std::vector<MappedFunction>& functions) {
  std::set<PciAddress> named;
  for (const auto& lease : functionLeases(leases)) {
    named.insert(lease.device);
  }
  for (const auto& function : functions) {
    named.insert(function.pci);
  }
  return {named.begin(), named.end()};
}

std::set<PciAddress> devicesOf(const std::vector<Lease>& leases) {
  std::set<PciAddress> devices;
  for (const auto& lease : leases) {
    devices.insert(lease.device);
  }
  return devices;
}

std::vector<Objection> checkQuarantine(const std::string& name, const PciAddress& device,
                                       const std::vector<QuarantinedDevice>& quarantined) {
  const auto found = std::ranges::find_if(quarantined, [&](const QuarantinedDevice& each) {
    return each.device == device ||
           std::ranges::find(each.elsewhere, device) != each.elsewhere.end();
  });
  if (found == quarantined.end()) {
    return {};
  }
  const std::string address = toString(found->device);
  std::string message = name + " has been in quarantine";
  if (found->device != device) {
    message += ", then at " + address + ",";
  }
  message += " since " + printable(found->since) + ": " + printable(found->reason);
  if (found->device == device && isReplaced(*found)) {
    message += "; another card is at its address now (" + printable(found->found) + ")";
  }
  return {{message, "find the cause, then run `vfpass quarantine release " + address + "`"}};
}

std::vector<Objection> checkQuarantine(const std::vector<Lease>& leases,
                                       const std::vector<QuarantinedDevice>& quarantined) {
  std::vector<Objection> objections;
  for (const Lease& lease : leases) {
    const std::string name = lease.entry + ": " + describeDevice(lease);
    append(checkQuarantine(name, lease.device, quarantined), objections);
    if (lease.pf != lease.device) {
      append(checkQuarantine(name + ": its PF", lease.pf, quarantined), objections);
    }
  }
  return objections;
}

std::vector<Objection> checkFunctionKind(const Device& function, const DeviceTerms& terms) {
  if (function.physicalFunction) {
    return {
        {toString(function.address) + " is a VF of PF " + toString(*function.physicalFunction) +
             ": `gpus:` passes functions through without setting MAC and VLAN",
         "list it under `vfs:` with `pf: {pci: \"" + toString(*function.physicalFunction) + "\"}`",
         ExitCode::badInput}};
  }
  if (isBridge(function)) {
    return {{nameOf(function) + " is a bridge: the host would lose the devices below it",
             "name the device itself; `lspci -t` shows the tree"}};
  }
  std::vector<Objection> objections;
  if (function.vfCount > 0) {
    objections.push_back(
        {nameOf(function) + " is a PF with " + std::to_string(function.vfCount) +
             (function.vfCount == 1 ? " VF" : " VFs") + ", which would be removed",
         "list VFs under `vfs:` instead, or remove the VFs (sriov_numvfs) if none is in use"});
  }
  if (function.bootVga) {
    objections.push_back(
        {nameOf(function) + " is the host's boot display: the host's console would freeze",
         "select another primary display in the firmware setup, or boot without one"});
  }
  append(checkIsolation(nameOf(function), function, terms), objections);
  return objections;
}

// VFIO falls back to a bus reset, but only when one owner has all devices on the bus
// (vfio_pci_dev_set_try_reset, drivers/vfio/pci/vfio_pci_core.c).
std::vector<Objection> checkReset(const Device& function, const DeviceTerms& terms) {
  auto strangers = function.busPeers;
  std::erase_if(strangers,
                [&](const GroupPeer& peer) { return terms.companions.contains(peer.address); });
  if (strangers.empty()) {
    return {};
  }
  return {{nameOf(function) + " (" + terms.name +
               ") can be reset only with its bus, which it shares with " +
               listAddresses(strangers) + ": the next guest could read data left by this one",
           companionRemedy(strangers, terms) +
               "choose another device (reset_method in sysfs lists the resets of a device)"}};
}

std::vector<Objection> checkFunctionUse(const Device& function, const DeviceTerms& terms,
                                        const std::vector<Holder>& holders) {
  auto objections = objectToHolders(function.address, holders, terms.allow);
  if (function.locked) {
    objections.push_back(objectionToLock(nameOf(function)));
  }
  return objections;
}

std::vector<Objection> checkLeasedFunctions(const Inventory& inventory,
                                            const std::vector<Lease>& leases,
                                            const std::set<PciAddress>& companions) {
  std::vector<Objection> objections;
  for (const auto& lease : functionLeases(leases)) {
    const Device* function = findFunction(inventory, lease.device);
    if (function == nullptr) {
      objections.push_back(
          {"PCI function " + toString(lease.device) + " (" + lease.entry + ") does not exist",
           "check the card with `lspci`, or detach it", ExitCode::failed});
      continue;
    }
    if (const std::string other = otherDevice(lease, *function); !other.empty()) {
      objections.push_back(
          {lease.entry + ": " + other,
           "check which card is in which slot, correct the address in the mapping, then "
           "run `vfpass attach` again"});
      continue;
    }
    const DeviceTerms terms{lease.entry, companions, lease.allow};
    append(checkFunctionKind(*function, terms), objections);
    append(checkFunctionUse(*function, terms, inventory.holders), objections);
  }
  return objections;
}

std::vector<Objection> checkVf(const VirtualFunction& vf, const DeviceTerms& terms,
                               const std::vector<Holder>& holders) {
  auto objections = objectToHolders(vf.address, holders, terms.allow);
  if (vf.locked) {
    objections.push_back(objectionToLock(nameOf(vf)));
  }
  append(checkIsolation(nameOf(vf), vf, terms), objections);
  return objections;
}

std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                      const std::vector<Holder>& holders,
                                      const std::set<PciAddress>& companions) {
  std::vector<Objection> objections;
  DeviceTerms terms{"", devicesOf(leases), {}};
  terms.companions.insert(companions.begin(), companions.end());
  for (const auto& lease : leases) {
    if (const std::string other = otherDevice(lease, pf); !other.empty()) {
      objections.push_back({lease.entry + ": " + other,
                            "check which card is in which slot, then run `vfpass attach` again"});
      continue;
    }
    if (vfOf(lease).index >= pf.vfs.size()) {
      objections.push_back(
          {"PF " + toString(pf.address) + " has " + std::to_string(pf.vfs.size()) + " VFs, but " +
               lease.entry + " needs VF " + std::to_string(vfOf(lease).index),
           "raise its virtual-function-count in host.yaml and run `vfpass host apply`",
           ExitCode::failed});
      continue;
    }
    terms.allow = lease.allow;
    append(checkVf(pf.vfs[vfOf(lease).index], terms, holders), objections);
  }
  return objections;
}

namespace {

constexpr std::size_t longestName = 32;  // of an entry (mapping.schema.json)
constexpr std::uint32_t bridgeBase = 0x06;
// The class of NVSwitches, which have no bus below them.
constexpr std::uint32_t otherBridge = 0x0680;
// The class of a Direct NIC's DMA function (15b3:2100).
constexpr std::uint32_t systemPeripheral = 0x0880;

struct Kind {
  std::uint32_t code;  ///< base class and subclass
  std::string_view name;
};

// Functions that accompany GPUs, named as in the PCI Code and ID Assignment Specification. 0c80 is
// the USB Type-C controller (UCSI) of NVIDIA's cards.
constexpr std::array<Kind, 9> kinds{{{0x0403, "audio"},
                                     {0x0c03, "usb"},
                                     {0x0c80, "ucsi"},
                                     {0x0300, "gpu"},
                                     {0x0302, "gpu"},
                                     {0x0680, "nvswitch"},
                                     {0x0200, "nic"},
                                     {0x0108, "nvme"},
                                     {systemPeripheral, "dma"}}};

std::string peerKind(const GroupPeer& function) {
  const auto found = std::ranges::find(kinds, function.classCode >> 8U, &Kind::code);
  return found == kinds.end() ? "companion" : std::string(found->name);
}

std::string freeName(const std::string& entry, const std::string& kind,
                     std::set<std::string>& taken) {
  for (unsigned number = 1;; ++number) {
    const std::string end = "-" + kind + (number == 1 ? "" : std::to_string(number));
    std::string name = entry.substr(0, longestName - std::min(end.size(), longestName)) + end;
    if (taken.insert(name).second) {
      return name;
    }
  }
}

// VFIO considers a group with such a bridge viable (vfio_dev_viable, pcieport): its driver grants
// no device additional access, and a guest cannot access the bridge.
bool isHarmless(const GroupPeer& peer) {
  return isPciBridge(peer.classCode) && (peer.driver.empty() || peer.driver == "pcieport");
}

// Its ports put a Direct NIC's DMA function into the group of its GPU, on purpose (rdma_topo of
// rdma-core): setting them as for other devices would break it.
bool isDirectNicOf(const Device& device, const std::vector<GroupPeer>& strangers) {
  constexpr std::uint32_t displayBase = 0x03;
  return device.classCode >> 16U == displayBase &&
         std::ranges::all_of(strangers, [](const GroupPeer& peer) {
           return peer.classCode >> 8U == systemPeripheral;
         });
}

void checkGroup(const std::string& name, const Device& device, const DeviceTerms& terms,
                std::vector<Objection>& objections) {
  auto strangers = device.groupPeers;
  std::erase_if(strangers, [&](const GroupPeer& peer) {
    return isHarmless(peer) || terms.companions.contains(peer.address);
  });
  if (strangers.empty() || terms.allow.contains(Allowance::sharedIommuGroup)) {
    return;
  }
  objections.push_back({name + " shares IOMMU group " + std::to_string(*device.iommuGroup) +
                            " with " + listAddresses(strangers) +
                            ": the guest could reach those devices without IOMMU protection",
                        companionRemedy(strangers, terms) +
                            (isDirectNicOf(device, strangers)
                                 ? ""
                                 : "enable ACS on the bridges above (pci=config_acs=), or ") +
                            "accept the risk with `allow: [shared-iommu-group]`"});
}

// What enables the IOMMU of this host, or of one whose processors are not known.
std::string iommuSwitch(const Processors& processors) {
  return processors.architecture == "arm64"
             ? "the SMMU in the system's firmware"
             : "VT-d or AMD-Vi in the system's firmware (BIOS), on Intel also boot with "
               "intel_iommu=on";
}

}  // namespace

Objection objectToMissingIommu(const Processors& processors) {
  return {
      "the IOMMU is off: this host has no IOMMU group, and a guest's DMA could reach all host "
      "memory",
      "enable " + iommuSwitch(processors) + "; `vfpass doctor` names what is missing (iommu)",
      ExitCode::failed};
}

std::vector<Objection> checkIsolation(const std::string& name, const Device& device,
                                      const DeviceTerms& terms) {
  std::vector<Objection> objections;
  if (device.iommuGroup) {
    checkGroup(name, device, terms, objections);
  } else if (terms.iommuPresent) {
    objections.push_back(
        {name +
             " has no IOMMU group: the IOMMU is off, and a guest's DMA could reach all host memory",
         "enable the IOMMU (VT-d, AMD-Vi or SMMU) in the system's firmware (BIOS) and in the "
         "kernel; `vfpass doctor` names what is missing (iommu)"});
  }
  if (terms.unsafeInterrupts && !terms.allow.contains(Allowance::unsafeInterrupts)) {
    objections.push_back(
        {name + " cannot be isolated: vfio_iommu_type1 has allow_unsafe_interrupts=Y, so a guest "
                "could inject interrupts",
         "set allow_unsafe_interrupts to N, or accept the risk with `allow: [unsafe-interrupts]`"});
  }
  return objections;
}

std::string companionRemedy(const std::vector<GroupPeer>& functions, const DeviceTerms& terms) {
  const bool anyBridge = std::ranges::any_of(functions, [](const GroupPeer& function) {
    return function.classCode >> 16U == bridgeBase && function.classCode >> 8U != otherBridge;
  });
  if (functions.empty() || terms.name.empty() || anyBridge) {
    return {};
  }
  std::set<std::string> taken = terms.takenNames;
  std::string text = "pass them to the same guest with these lines under `functions:`:";
  for (const auto& function : functions) {
    text += "\n  - {name: " + freeName(terms.name, peerKind(function), taken) + ", pci: \"" +
            toString(function.address) + "\"}";
  }
  return text + "\nor ";
}

std::string listAddresses(const std::vector<GroupPeer>& functions) {
  std::vector<std::string> addresses;
  for (const auto& function : functions) {
    addresses.push_back(toString(function.address));
  }
  return join(addresses, ", ");
}

void checkMigrationHost(const AttachInput& input, std::vector<Objection>& objections) {
  if (std::ranges::none_of(input.mapping.vfs, &MappedVf::migrates)) {
    return;
  }
  if (!input.hasMigrationDriver.value_or(true)) {
    objections.push_back(
        {std::string(migrationKey) + " needs the VFIO driver " + std::string(mlx5MigrationDriver) +
             ", and the running kernel (Linux " + versionText(input.kernel) +
             ") has no module for it",
         "boot a kernel with CONFIG_MLX5_VFIO_PCI, which Debian's kernels do not set, or use "
         "`teaming:` instead"});
  }
  requireVersion("Linux", input.kernel, kernelWithMigratable, "makes a VF migratable with devlink",
                 objections);
  requireVersion("libvirt", input.versions.libvirt, libvirtWithModel,
                 "knows <driver model='" + std::string(mlx5MigrationDriver) + "'/>", objections);
  requireVersion("QEMU", input.versions.qemu, qemuWithMigration, "migrates VFIO devices",
                 objections);
}

void checkMigration(const MappedVf& entry, const PhysicalFunction& pf,
                    std::vector<Objection>& objections) {
  if (!entry.migrates) {
    return;
  }
  const std::string subject =
      toString(entry.place) + ": " + entry.name + " has " + migrationKey + ", but ";
  const std::string name = "PF " + toString(pf.address);
  if (!hasMlx5Firmware(pf.vendor, pf.driver)) {
    objections.push_back({subject + name +
                              " is not a NIC of mlx5_core, and vfpass knows no other "
                              "driver that migrates a VF",
                          "remove `migration:`, or choose a PF of a ConnectX-7 or BlueField-3",
                          ExitCode::badInput});
  } else if (pf.linkLayer == LinkLayer::infiniband) {
    objections.push_back(
        {subject + name + " is InfiniBand: the card's firmware saves only Ethernet VFs",
         "remove `migration:`, or choose a PF whose port is Ethernet", ExitCode::badInput});
  } else if (pf.eswitchMode == EswitchMode::legacy) {
    // devlink has ports of VFs only in switchdev mode (mlx5_esw_offloads_devlink_port_register).
    objections.push_back(
        {subject + name + " is in legacy mode, in which no VF can be made migratable",
         "set `embedded-switch-mode: switchdev` for it in host.yaml and run "
         "`vfpass host apply`, or use `teaming:` instead"});
  } else if (pf.savesNoVfs) {
    // mlx5 answers for a port only if the firmware has the capability `migration`
    // (mlx5_devlink_port_fn_migratable_get).
    objections.push_back({subject + name +
                              " cannot save the state of a VF: devlink shows no `migratable` at "
                              "the ports of its VFs",
                          "run `vfpass doctor`: vf-migration says what kernel and firmware need; "
                          "or use `teaming:` instead"});
  }
}

}  // namespace vfpass::plan
