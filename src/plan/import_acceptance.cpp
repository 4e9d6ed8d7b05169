#include <algorithm>
#include <array>

#include "import_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/owner_objections.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {

LeftOut leaveOut(const HandMadeDevice& device, LeftOutReason reason, const std::string& message,
                 const std::string& remedy) {
  return {device.form, device.host, reason, message, remedy};
}

namespace {

// An element of these kinds never gets an entry, whatever it says about its device.
std::optional<LeftOut> leftOutByKind(const HandMadeDevice& device) {
  using Reason = LeftOutReason;
  switch (device.kind) {
    case HandMadeKind::mediated:
      return leaveOut(device, Reason::mediated,
                      "it is a mediated device; vfpass leases whole functions and VFs");
    case HandMadeKind::otherBus:
    case HandMadeKind::capability:
      return leaveOut(device, Reason::otherBus, "it is not a PCI function; it stays as it is");
    case HandMadeKind::arguments:
      return leaveOut(device, Reason::arguments,
                      "it is in <qemu:commandline>, where vfpass cannot change or release it",
                      "replace it with a <hostdev> while the domain is off, then import again");
    case HandMadeKind::nvmeDisk:
      return leaveOut(device, Reason::nvmeDisk,
                      "QEMU drives it as a disk of the host; it stays as it is");
    case HandMadeKind::macvtap:
      return leaveOut(device, Reason::macvtap,
                      "the guest has a macvtap of the VF's netdev " + printable(device.netdev) +
                          ", and no RDMA",
                      "replace it with <interface type='hostdev'> for the VF while the domain is "
                      "off, then import again");
    case HandMadeKind::fromNetwork:
      return leaveOut(
          device, Reason::network,
          "libvirt network " + printable(device.network) + " chooses its device at each start",
          "replace it with <interface type='hostdev'> for one VF, and take this VF out of "
          "the network");
    case HandMadeKind::hostdev:
    case HandMadeKind::interface:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<LeftOut> leftOutByElement(const ImportInput& input, const HandMadeDevice& device) {
  using Reason = LeftOutReason;
  if (device.ours) {
    return leaveOut(device, Reason::managed, "vfpass has added it",
                    "run `vfpass status` to see its lease");
  }
  if (auto kind = leftOutByKind(device)) {
    return kind;
  }
  if (!device.host) {
    return leaveOut(device, Reason::invalid, "its host address is missing or invalid",
                    "correct it with `virsh edit`");
  }
  // A lease records the device's place in the guest.
  if (!device.placed) {
    return leaveOut(device, Reason::invalid, "it has no PCI address in the guest",
                    "define the domain again, so that libvirt adds one");
  }
  if (std::ranges::count(input.configured, device.host, &HandMadeDevice::host) > 1) {
    return leaveOut(device, Reason::claimedTwice, "two elements of this domain name it",
                    "remove one of them with `virsh edit`");
  }
  return std::nullopt;
}

namespace {

bool namesVf(const ImportInput& input, const MappedVf& entry, const PciAddress& address) {
  const PhysicalFunction* pf = pfOfVf(input.inventory, address);
  const auto named = pf == nullptr ? std::vector<const PhysicalFunction*>()
                                   : matchingPfs(entry.pf, input.inventory);
  return named.size() == 1 && named.front() == pf && entry.index && *entry.index < pf->vfs.size() &&
         pf->vfs[*entry.index].address == address;
}

const Mapping* mappingWith(const ImportInput& input, const PciAddress& address) {
  const auto found = std::ranges::find_if(input.otherMappings, [&](const Mapping& mapping) {
    return std::ranges::find(mapping.functions, address, &MappedFunction::pci) !=
               mapping.functions.end() ||
           std::ranges::any_of(
               mapping.vfs, [&](const MappedVf& entry) { return namesVf(input, entry, address); });
  });
  return found == input.otherMappings.end() ? nullptr : &*found;
}

std::optional<LeftOut> leftOutByOwner(const ImportInput& input, const HandMadeDevice& device) {
  using Reason = LeftOutReason;
  const PciAddress& address = device.host.value();
  for (const Lease& lease : input.leases) {
    if (lease.device == address || lease.pf == address) {
      const std::string owner = printable(lease.domainName);
      return leaveOut(device, Reason::managed,
                      std::string(lease.device == address ? "it" : "a VF of it") +
                          " is leased to domain " + owner,
                      "run `vfpass status " + shellArgument(lease.domainName) + "`");
    }
  }
  for (const DomainSummary& domain : input.domains) {
    if (domain.uuid != input.domain &&
        std::ranges::find(domain.claims, address, &Claim::device) != domain.claims.end()) {
      return leaveOut(device, Reason::otherDomain,
                      "domain " + printable(domain.name) + " names it as well",
                      "remove it from one of the two domains, then import again");
    }
  }
  if (const Mapping* other = mappingWith(input, address)) {
    return leaveOut(device, Reason::otherDomain,
                    "the mapping of VM " + printable(other->vm) + " names it as well",
                    "remove it from " + printable(other->file) + ", then import again");
  }
  const PhysicalFunction* pf = pfOfVf(input.inventory, address);
  if (const auto* pool =
          findPool(input.pools, address, pf == nullptr ? std::string_view() : pf->netdev())) {
    return leaveOut(device, Reason::network,
                    "it belongs to the pool of libvirt network " + printable(pool->network) +
                        ", which could assign it to another domain",
                    "take it out of the network, then import again");
  }
  return std::nullopt;
}

std::optional<LeftOut> leftOutAsVf(const ImportInput& input, const HandMadeDevice& device,
                                   const Device& function) {
  const PhysicalFunction* pf = pfOfVf(input.inventory, function.address);
  if (pf != nullptr) {
    return std::nullopt;
  }
  const Device* parent = findFunction(input.topology, *function.physicalFunction);
  const std::string driver =
      parent == nullptr || parent->driver.empty() ? "no driver" : "driver " + parent->driver;
  return leaveOut(device, LeftOutReason::driver,
                  "it is a VF of " + toString(*function.physicalFunction) + " (" +
                      printable(driver) + "); vfpass knows VFs of NICs only");
}

// A PF that is passed through whole is an entry of `functions:` only by the user's decision: the
// guest then owns the port and all settings of its VFs.
std::optional<LeftOut> leftOutAsPf(const HandMadeDevice& device, const Device& function) {
  if (function.role == FunctionRole::gpu || function.totalVfs == 0 || !isPf(function)) {
    return std::nullopt;
  }
  const std::string message =
      "it is a PF: the guest has the whole port and could configure all of its VFs";
  return leaveOut(
      device, LeftOutReason::pf,
      message +
          (function.vfCount > 0 ? ", of which " + std::to_string(function.vfCount) + " exist" : ""),
      "give the guest a VF of it instead, or list it below `functions:` of a mapping "
      "for a guest without this hostdev");
}

std::optional<LeftOut> leftOutAsFunction(const ImportInput& input, const HandMadeDevice& device) {
  const Device* function = findFunction(input.inventory, device.host.value());
  if (device.kind == HandMadeKind::interface) {
    return leaveOut(device, LeftOutReason::settings,
                    "it is not a VF, and an <interface> can only have a VF",
                    "replace it with a <hostdev>");
  }
  if (function == nullptr) {
    return leaveOut(device, LeftOutReason::missing, "it cannot be read");
  }
  // Isolation is left to `allow:`.
  DeviceTerms terms;
  terms.allow = {Allowance::sharedIommuGroup, Allowance::unsafeInterrupts};
  terms.iommuPresent = input.inventory.iommuPresent;
  const auto objections = checkFunctionKind(*function, terms);
  if (objections.empty()) {
    return std::nullopt;
  }
  return leaveOut(device, LeftOutReason::function, printable(objections.front().message),
                  objections.front().remedy);
}

// `vfio` is the backend; Xen's and the old KVM assignment are not VFIO.
std::optional<LeftOut> leftOutByDriver(const HandMadeDevice& device, bool isVf) {
  constexpr std::array known{"", "vfio", "vfio-pci"};
  const bool named = !isVf && device.driver == "nvgrace_gpu_vfio_pci";
  if (named || std::ranges::find(known, device.driver) != known.end()) {
    return std::nullopt;
  }
  return leaveOut(
      device, LeftOutReason::driver,
      "its <driver> is " + printable(device.driver) + ", which an entry of a mapping cannot name",
      "remove <driver> with `virsh edit`, then import again");
}

}  // namespace

std::optional<LeftOut> leftOutByDevice(const ImportInput& input, const HandMadeDevice& device) {
  if (auto owner = leftOutByOwner(input, device)) {
    return owner;
  }
  const Device* function = findFunction(input.topology, device.host.value());
  if (function == nullptr) {
    return leaveOut(device, LeftOutReason::missing, "this host has no such function",
                    "remove it with `virsh edit`, or check the card with `lspci`");
  }
  auto quarantined = checkQuarantine("it", device.host.value(), input.inventory.quarantined);
  if (function->physicalFunction) {
    append(checkQuarantine("its PF", *function->physicalFunction, input.inventory.quarantined),
           quarantined);
  }
  if (!quarantined.empty()) {
    return leaveOut(device, LeftOutReason::quarantine, quarantined.front().message,
                    quarantined.front().remedy);
  }
  const bool isVf = function->physicalFunction.has_value();
  if (auto driver = leftOutByDriver(device, isVf)) {
    return driver;
  }
  if (isVf) {
    return leftOutAsVf(input, device, *function);
  }
  if (auto pf = leftOutAsPf(device, *function)) {
    return pf;
  }
  return leftOutAsFunction(input, device);
}

namespace {

const DomainInterface* standbyOf(const ImportInput& input, const HandMadeTeaming& teaming) {
  const auto found =
      std::ranges::find(input.interfaces, teaming.persistent, &DomainInterface::alias);
  return found == input.interfaces.end() ? nullptr : &*found;
}

// The rules of attach for `teaming:`.
std::string teamingFault(const ImportInput& input, const HandMadeDevice& device,
                         const std::optional<MacAddress>& mac) {
  constexpr std::string_view prefix = "ua-";
  const HandMadeTeaming& teaming = *device.teaming;
  if (teaming.type != "transient") {
    return "its <teaming> has the type " + printable(teaming.type);
  }
  if (!teaming.persistent.starts_with(prefix) ||
      !isEntryName(std::string_view(teaming.persistent).substr(prefix.size()))) {
    return "the partner of its <teaming> needs an alias of ua- and up to 32 letters, digits, _ and "
           "-";
  }
  const DomainInterface* standby = standbyOf(input, teaming);
  if (standby == nullptr || standby->teaming != "persistent" || standby->model != "virtio" ||
      !standby->mac) {
    return "the partner of its <teaming> is not a virtio interface of this domain with "
           "<teaming type='persistent'/>";
  }
  return mac && *mac != *standby->mac
             ? "its MAC " + toString(*mac) + " differs from that of " +
                   printable(teaming.persistent) + ", so the guest does not pair the two"
             : "";
}

std::optional<MacAddress> usable(const std::optional<MacAddress>& mac) {
  return mac && !mac->isZero() ? mac : std::nullopt;
}

}  // namespace

std::optional<LeftOut> leftOutByValues(const ImportInput& input, const HandMadeDevice& device,
                                       const PhysicalFunction& pf, const VirtualFunction& vf) {
  const bool infiniband = pf.linkLayer == LinkLayer::infiniband;
  const bool interface = device.kind == HandMadeKind::interface;
  const auto out = [&](const std::string& message, const std::string& remedy = {}) {
    return leaveOut(device, LeftOutReason::settings, message, remedy);
  };
  if (infiniband && (interface || device.teaming)) {
    return out("it is an InfiniBand VF, which has no MAC: libvirt cannot set up this element",
               "replace it with a plain <hostdev>");
  }
  if (!device.vlanFault.empty()) {
    return out(device.vlanFault, "leave one tag in its <vlan>, and no trunk='yes'");
  }
  const auto vlan = presentVlan(device, vf);
  if (interface && vlan && (vlan->qos != 0 || vlan->protocol != VlanProtocol::dot1q)) {
    return out("the PF gives it VLAN priority or 802.1ad, which an <interface> cannot have",
               "replace it with a <hostdev>");
  }
  const auto mac = interface ? device.mac : usable(vf.settings.mac);
  if (interface && (!mac || mac->isZero() || mac->isMulticast())) {
    return out("it has no usable <mac>", "give it one with `virsh edit`");
  }
  if (device.teaming) {
    if (const auto fault = teamingFault(input, device, mac); !fault.empty()) {
      return leaveOut(device, LeftOutReason::teaming, fault,
                      "correct the team with `virsh edit`, then import again");
    }
  }
  return std::nullopt;
}

const PhysicalFunction* pfOfVf(const Inventory& inventory, const PciAddress& vf) {
  const auto found = std::ranges::find_if(inventory.pfs, [&](const PhysicalFunction& pf) {
    return std::ranges::find(pf.vfs, vf, &VirtualFunction::address) != pf.vfs.end();
  });
  return found == inventory.pfs.end() ? nullptr : &*found;
}

}  // namespace vfpass::plan
