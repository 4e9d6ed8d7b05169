#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <vector>

#include "check.hpp"
#include "config_space.hpp"
#include "remedies.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::doctor {
namespace {

// The PFs of rails, and used PFs that are not the nearest of any GPU.
std::set<std::size_t> pairedPfs(const View& view) {
  std::set<std::size_t> found;
  for (const auto& rail : view.rails()) {
    found.insert(*rail.pf);
  }
  std::ranges::copy_if(view.pfs(), std::inserter(found, found.end()),
                       [&](std::size_t pf) { return view.namesDevices() && view.uses(pf); });
  return found;
}

bool sharesWithUsedGpu(const View& view, std::size_t pf) {
  return view.uses(pf) && std::ranges::any_of(view.gpus(), [&](std::size_t gpu) {
           return view.uses(gpu) && sharesSwitch(view, gpu, pf);
         });
}

// rdma_topo's NUMA topology (NVCX_NUMA_Complex): one of NVIDIA's GPUs directly below a root port,
// and a ConnectX-7, 8 or 9.
bool isNumaPair(const View& view, std::size_t pf) {
  constexpr std::array<std::uint16_t, 3> devices{0x1021, 0x1023, 0x1025};
  const Device& nic = view.function(pf);
  const bool isKnown =
      nic.vendor == mellanox && std::ranges::find(devices, nic.device) != devices.end();
  return isKnown && std::ranges::any_of(view.rails(), [&](const topology::Rail& rail) {
           const Device& gpu = view.function(rail.gpu);
           return rail.pf == pf && gpu.vendor == nvidia && gpu.parent &&
                  view.function(*gpu.parent).role == FunctionRole::rootPort;
         });
}

// Between devices without a common switch all requests pass the root complex, where the IOMMU
// translates them. There is nothing that ATS could spare. rdma_topo refuses it on the platforms
// that it knows, and so do we; others work with it.
void checkWithoutSwitch(const View& view, std::size_t number, const std::string& config,
                        Results& results) {
  const Device& pf = view.function(number);
  if (isNumaPair(view, number) && hasAts(config)) {
    results.failedIfUsed(view.uses(number), nameOf(pf),
                         "no ATS capability: GPU and NIC are below different root ports",
                         "present; rdma_topo refuses it, too", atsRemedy(view, pf, false));
  } else {
    results.passed(nameOf(pf), "the ATS capability, if a GPU shares a switch with the NIC",
                   "not needed: no GPU shares a switch with it");
  }
}

void checkCapability(const View& view, std::size_t number, Results& results) {
  const std::string expected = "the ATS capability, if a GPU shares a switch with the NIC";
  const Device& pf = view.function(number);
  const std::string& config = view.config(pf);
  if (!sharesSwitchWithGpu(view, number)) {
    checkWithoutSwitch(view, number, config, results);
  } else if (!hasExtendedSpace(config)) {
    results.notObservable(nameOf(pf), expected, "cannot read its configuration space",
                          "sudo vfpass doctor");
  } else if (hasAts(config)) {
    results.passed(nameOf(pf), expected, "present");
  } else {
    results.failedIfUsed(sharesWithUsedGpu(view, number), nameOf(pf), expected,
                         "disabled in the firmware", atsRemedy(view, pf, true));
  }
}

// The word of the kernel command line with `pci=noats`, which keeps ATS off in all devices
// (pci_ats_disabled); empty: none.
std::string noAtsArgument(const View& view) {
  for (const std::string& word : view.settings("proc/cmdline")) {
    if (word.starts_with("pci=") &&
        ("," + word.substr(4) + ",").find(",noats,") != std::string::npos) {
      return word;
    }
  }
  return {};
}

/// The VFs of one PF by the state of their ATS.
struct VfAts {
  std::vector<std::string> enabled;
  std::vector<std::size_t> disabled;      ///< for certain, also for a guest
  std::vector<std::string> notYetNeeded;  ///< disabled until a guest opens them
  std::vector<std::string> unreadable;
};

// VFIO has taken the function, and its guest's driver works.
bool isUsedByGuest(const Device& vf, const std::string& config) {
  return isVfioDriver(vf.driver) && isBusMaster(config);
}

// The IOMMU driver enables ATS with a domain that translates: always for a guest, on the host if
// its group does not have the type identity (as with iommu=pt).
bool hasTranslation(const View& view, const Device& vf) {
  const auto type = vf.iommuGroup ? view.root().readText("sys/kernel/iommu_groups/" +
                                                         std::to_string(*vf.iommuGroup) + "/type")
                                  : std::nullopt;
  return !type || trim(*type) != "identity";
}

// If the first VF cannot be read, for want of root, neither can the others.
VfAts vfAtsOf(const View& view, const PciAddress& pf) {
  VfAts found;
  for (std::size_t number = 0; number < view.topology().functions.size(); ++number) {
    const Device& vf = view.function(number);
    if (vf.physicalFunction != pf) {
      continue;
    }
    const bool isReadable = found.unreadable.empty();
    const std::string config = isReadable ? readConfig(view.root(), vf) : "";
    if (!hasExtendedSpace(config)) {
      found.unreadable.push_back(toString(vf.address));
    } else if (atsEnabled(config).value_or(false)) {
      found.enabled.push_back(toString(vf.address));
    } else if (isUsedByGuest(vf, config) || hasTranslation(view, vf)) {
      found.disabled.push_back(number);
    } else {
      found.notYetNeeded.push_back(toString(vf.address));
    }
  }
  return found;
}

// Whether it has ATS, or cannot be read. A PF without ATS has none in its VFs either; `ats` says
// so.
bool mayHaveAts(const View& view, const Device& pf) {
  const std::string& config = view.config(pf);
  return !hasExtendedSpace(config) || hasAts(config);
}

std::string countText(const std::vector<std::string>& vfs) {
  return std::to_string(vfs.size()) + (vfs.size() == 1 ? " VF" : " VFs");
}

void reportVfs(const View& view, std::size_t number, const VfAts& found, Results& results) {
  const std::string expected = "ATS enabled in the VF, too";
  const std::string name = nameOf(view.function(number));
  for (const std::size_t vf : found.disabled) {
    results.failedIfUsed(
        sharesWithUsedGpu(view, number), toString(view.function(vf).address), expected, "disabled",
        "look for the cause with `dmesg | grep -i -e ats -e iommu`: ATS stays off if the IOMMU or "
        "the root port does not support it, with pci=noats (see ats), and before Linux 6.12 if the "
        "PF is in an identity domain (see iommu-passthrough)");
  }
  if (!found.unreadable.empty()) {
    results.notObservable(name, expected,
                          "cannot read the configuration space of " + countText(found.unreadable),
                          "sudo vfpass doctor");
  }
  if (!found.notYetNeeded.empty()) {
    results.notObservable(name, expected,
                          "disabled in " + countText(found.notYetNeeded) +
                              " of the host, for which the IOMMU does not translate; it enables "
                              "ATS when a guest opens a VF",
                          "sudo vfpass doctor  # while the guest runs");
  }
  if (!found.enabled.empty()) {
    results.passed(name, expected, "enabled in " + countText(found.enabled));
  }
}

}  // namespace

void checkAts(const View& view, Results& results) {
  if (const std::string argument = noAtsArgument(view); !argument.empty()) {
    results.failed("", "ATS not disabled for all devices", "pci=noats on the kernel command line",
                   argument == "pci=noats"
                       ? removeKernelArgument(view, argument)
                       : "remove noats from pci= on the kernel command line, then reboot");
  }
  bool any = false;
  for (const std::size_t number : pairedPfs(view)) {
    if (canHaveAts(view, view.function(number))) {
      any = true;
      checkCapability(view, number, results);
    }
  }
  if (!any) {
    results.waived("no NIC of a rail can have ATS: see other-nics");
  }
}

void checkVfAts(const View& view, Results& results) {
  bool any = false;
  for (const std::size_t number : pairedPfs(view)) {
    const Device& pf = view.function(number);
    const bool applies =
        sharesSwitchWithGpu(view, number) && canHaveAts(view, pf) && mayHaveAts(view, pf);
    const VfAts found = applies ? vfAtsOf(view, pf.address) : VfAts{};
    reportVfs(view, number, found, results);
    any = any || !found.enabled.empty() || !found.disabled.empty() || !found.notYetNeeded.empty() ||
          !found.unreadable.empty();
  }
  if (!any) {
    results.waived("no NIC with ATS shares a switch with a GPU and has VFs");
  }
}

bool needsAts(const View& view, std::size_t pf) {
  return pairedPfs(view).contains(pf) && sharesSwitchWithGpu(view, pf);
}

bool canHaveAts(const View& view, const Device& pf) {
  return hasMlx5Firmware(pf.vendor, pf.driver) || hasAts(view.config(pf));
}

namespace {

using topology::Link;
using topology::linkText;

constexpr const char* expectedLink = "the speed and width that both ends of the link can do";

std::string withoutDevice(const View& view) {
  return view.gpus().empty() && view.pfs().empty() ? "no GPU and no NIC with SR-IOV or RDMA" : "";
}

// The physical slot of a card, if the firmware numbers it: `sys/bus/pci/slots/NAME/address` has
// domain, bus and device (Documentation/ABI/testing/sysfs-bus-pci).
std::string slotOf(const View& view, const PciAddress& address) {
  const std::string folder = "sys/bus/pci/slots";
  const std::string card = toString(address).substr(0, toString(address).rfind('.'));
  for (const std::string& name : view.root().list(folder)) {
    if (view.root().readText(folder + "/" + name + "/address") == card) {
      return " " + printable(name);
    }
  }
  return {};
}

std::string remedyFor(const View& view, const Link& link) {
  const Device& device = view.function(link.function);
  const std::string slot = "slot" + slotOf(view, device.address);
  const std::string what = isBridge(device) ? "switch" : "card";
  return "power-cycle the host after reseating the " + what + " in its " + slot +
         ", with riser or cable; in the BIOS set the speed of the slot to auto and its lanes to x" +
         std::to_string(link.possible.width) + " (bifurcation)";
}

std::string subjectOf(const View& view, std::size_t number) {
  const Device& device = view.function(number);
  return isBridge(device)                   ? "switch " + toString(device.address)
         : device.role == FunctionRole::gpu ? toString(device.address)
                                            : nameOf(device);
}

std::string fullText(const View& view, const Link& link) {
  const std::string now = linkText(link.now);
  return topology::isLimitedBySlot(view.topology(), link)
             ? now + ", all that its slot can do; the card can do " +
                   linkText(view.function(link.function).best)
             : now;
}

void judgeLink(const View& view, const Link& link, bool used, Results& results) {
  const std::string subject = subjectOf(view, link.function);
  const std::string now = linkText(link.now);
  switch (link.state) {
    case topology::LinkState::full:
      return results.passed(subject, expectedLink, fullText(view, link));
    case topology::LinkState::degraded:
      return results.failedIfUsed(used, subject, expectedLink,
                                  now + " of " + linkText(link.possible), remedyFor(view, link));
    case topology::LinkState::idle:
      return results.notObservable(
          subject, expectedLink,
          now + " of " + linkText(link.possible) + "; the speed is not judged while it is idle",
          "look again while a job runs on the GPU");
    case topology::LinkState::synthetic:
      return results.notObservable(
          subject, expectedLink,
          "a virtual port, whose " + linkText(link.possible) + " tells nothing about the link", "");
    case topology::LinkState::unknown:
      break;
  }
  results.notObservable(subject, expectedLink, "it reports no speed or no width",
                        "lspci -vvs " + toString(view.function(link.function).address));
}

struct UsedLink {
  Link link;
  bool used = false;  ///< by a device below it
};

void add(std::vector<UsedLink>& links, const Link& link, bool used) {
  const auto known = std::ranges::find_if(
      links, [&](const UsedLink& each) { return each.link.function == link.function; });
  if (known == links.end()) {
    links.push_back({link, used});
  } else {
    known->used |= used;
  }
}

// Each link once: those of NICs and GPUs, then the uplinks of the switches above them.
void checkLinks(const View& view, Results& results) {
  std::vector<UsedLink> links;
  std::vector<UsedLink> uplinks;
  for (const auto& devices : {view.pfs(), view.gpus()}) {
    for (const std::size_t device : devices) {
      for (const Link& link : topology::linksAbove(view.topology(), device)) {
        add(isBridge(view.function(link.function)) ? uplinks : links, link, view.uses(device));
      }
    }
  }
  // A switch whose uplink reports nothing is not worth a finding.
  std::erase_if(uplinks, [](const UsedLink& each) {
    return each.link.state == topology::LinkState::unknown;
  });
  links.insert(links.end(), uplinks.begin(), uplinks.end());
  for (const UsedLink& each : links) {
    judgeLink(view, each.link, each.used, results);
  }
}

constexpr std::array pcieLinkTable{
    Check{"pcie-link", "a slow or narrow link limits every transfer of the device", withoutDevice,
          checkLinks},
    Check{"kernel-log", "some faults of a device are only in the kernel's log", withoutDevice,
          checkKernelLog},
    Check{"quarantine", "no VM gets a device that may have another tenant's data or a fault",
          withoutQuarantine, checkQuarantine}};

}  // namespace

std::span<const Check> pcieLinkChecks() { return pcieLinkTable; }

}  // namespace vfpass::doctor
