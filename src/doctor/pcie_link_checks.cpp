#include <algorithm>
#include <array>
#include <vector>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/topology/pcie_link.hpp"

namespace vfpass::doctor {
namespace {

using topology::Link;
using topology::LinkState;
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
    case LinkState::full:
      return results.passed(subject, expectedLink, fullText(view, link));
    case LinkState::degraded:
      return results.failedIfUsed(used, subject, expectedLink,
                                  now + " of " + linkText(link.possible), remedyFor(view, link));
    case LinkState::idle:
      return results.notObservable(
          subject, expectedLink,
          now + " of " + linkText(link.possible) + "; the speed is not judged while it is idle",
          "look again while a job runs on the GPU");
    case LinkState::synthetic:
      return results.notObservable(
          subject, expectedLink,
          "a virtual port, whose " + linkText(link.possible) + " tells nothing about the link", "");
    case LinkState::unknown:
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
  std::erase_if(uplinks,
                [](const UsedLink& each) { return each.link.state == LinkState::unknown; });
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
