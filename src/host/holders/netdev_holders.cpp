#include "holders/holder_kinds.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <string>

#include "netlink/netlink_exchange.hpp"
#include "netlink/rdma_message.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t reasonLimit = 4;
constexpr std::size_t holderLimit = 8;  // a PF can have hundreds of representors

// The kernel allows up to 15 bytes (IFNAMSIZ) of nearly any value.
std::string shown(const Link& link) { return printable(link.name.substr(0, 32)); }

std::string shownWithKind(const Link& link) {
  const std::string kind = printable(link.kind.substr(0, 32));
  return (kind.empty() ? "" : kind + " ") + shown(link);
}

bool isOf(const OwnedLink& link, const FunctionFacts& function, bool ours) {
  if (link.function) {
    return *link.function == function.address;
  }
  // Before Linux 5.14 a link has no parent device; sysfs has the links of our namespace.
  return ours && std::ranges::find(function.netdevs, link.link.index, &Netdev::index) !=
                     function.netdevs.end();
}

std::string masterText(const NamespaceLinks& ours, int master) {
  const auto found = std::ranges::find_if(
      ours.links, [&](const OwnedLink& each) { return each.link.index == master; });
  return "belongs to " +
         (found == ours.links.end() ? "a bond or bridge" : shownWithKind(found->link));
}

bool isAbove(const Link& upper, int index, const NamespaceLinks& place) {
  if (upper.lower != index) {
    return false;
  }
  return place.ours ? !upper.lowerNamespace : place.ourId && upper.lowerNamespace == place.ourId;
}

// VLANs, macvlans and the like, including those that were moved to another namespace.
void addUppers(int index, const LinkSurvey& survey, std::vector<std::string>& reasons) {
  for (const NamespaceLinks& place : survey.namespaces) {
    for (const OwnedLink& each : place.links) {
      if (isAbove(each.link, index, place) && reasons.size() < reasonLimit) {
        reasons.push_back("carries " + shownWithKind(each.link) +
                          (place.ours ? "" : " of " + place.description));
      }
    }
  }
}

std::vector<std::string> usesOf(const Link& link, const NamespaceLinks& ours,
                                const LinkSurvey& survey) {
  std::vector<std::string> reasons;
  if (link.up) {
    reasons.emplace_back("is up");
  }
  if (link.master != 0) {
    reasons.push_back(masterText(ours, link.master));
  }
  if (ours.addressed.contains(link.index)) {
    reasons.emplace_back("has addresses");
  }
  addUppers(link.index, survey, reasons);
  return reasons;
}

std::string sentence(const std::vector<std::string>& reasons) {
  std::string text = reasons.front();
  for (std::size_t i = 1; i < reasons.size(); ++i) {
    text += (i + 1 == reasons.size() ? " and " : ", ") + reasons[i];
  }
  return text;
}

Holder netdevHolder(const FunctionFacts& function, std::string description, std::string remedy) {
  return {HolderKind::netdev, function.address, std::move(description), std::move(remedy),
          std::nullopt};
}

}  // namespace

std::vector<Holder> netdevHolders(const FunctionFacts& function, const LinkSurvey& survey) {
  std::vector<Holder> holders;
  for (const NamespaceLinks& place : survey.namespaces) {
    for (const OwnedLink& each : place.links) {
      if (!isOf(each, function, place.ours) || holders.size() == holderLimit) {
        continue;
      }
      if (!place.ours) {
        holders.push_back(netdevHolder(
            function, "its netdev " + shown(each.link) + " is in " + place.description,
            "stop the container or program that uses the netdev, or move it back to the host's "
            "network namespace"));
      } else if (const auto uses = usesOf(each.link, place, survey); !uses.empty()) {
        holders.push_back(netdevHolder(
            function, "its netdev " + shown(each.link) + " " + sentence(uses),
            "set the netdev down and remove its addresses, its master and the devices on top of "
            "it"));
      }
    }
  }
  return holders;
}

namespace {

// Drivers that expose the device to a program or another guest, without reporting users.
bool exposesDevice(const std::string& driver) {
  constexpr std::array<std::string_view, 4> drivers{"uio_pci_generic", "igb_uio", "xen-pciback",
                                                    "pciback"};
  return std::ranges::find(drivers, driver) != drivers.end() ||
         driver.find("vfio") != std::string::npos;
}

// pci-stub does not use the device; it only prevents other drivers from binding.
bool reserves(const std::string& driver) { return driver == "pci-stub"; }

std::string boundTo(const FunctionFacts& function) {
  return "bound to " + printable(function.driver.substr(0, 64));
}

// Whether any namespace has a netdev of this function.
bool hasNetdev(const FunctionFacts& function, const LinkSurvey& survey) {
  return !function.netdevs.empty() ||
         std::ranges::any_of(survey.namespaces, [&](const NamespaceLinks& place) {
           return std::ranges::any_of(place.links, [&](const OwnedLink& link) {
             return isOf(link, function, place.ours);
           });
         });
}

// Returns the first reason only, which is the most precise one.
std::string reasonFor(const FunctionFacts& function, const LinkSurvey& survey,
                      RdmaVisibility rdma) {
  if (!function.virtualDevices.empty()) {
    return function.virtualDevices.front() + " was created on it; cannot tell who uses that device";
  }
  if (exposesDevice(function.driver)) {
    return boundTo(function) + ", which exposes it to programs; cannot tell who uses it";
  }
  if (!function.isNetwork || reserves(function.driver)) {
    return {};
  }
  if (!survey.blindSpot.empty()) {
    return survey.blindSpot;
  }
  if (rdma == RdmaVisibility::ownNamespace && function.rdma.empty() &&
      function.driver == "mlx5_core" && survey.namespaces.size() > 1) {
    return boundTo(function) +
           " without a visible RDMA device, and RDMA devices of other network namespaces are "
           "hidden (`rdma system` reports netns exclusive)";
  }
  // An RDMA device on Ethernet is created for a netdev; where that netdev is not found, it is in a
  // namespace that is not found either.
  const bool needsNetdev = function.rdma.empty() || function.linkLayer == LinkLayer::ethernet;
  return hasNetdev(function, survey) || !needsNetdev
             ? std::string{}
             : boundTo(function) + " but has no netdev in any network namespace" +
                   (survey.unread.empty() ? "" : " that can be read") +
                   "; cannot tell who uses it" +
                   (survey.unread.empty() ? "" : ": " + survey.unread);
}

}  // namespace

RdmaVisibility readRdmaVisibility(const Root& root, std::chrono::milliseconds deadline) {
  if (!root.exists("sys/class/infiniband")) {
    return RdmaVisibility::all;
  }
  const auto answers = runNetlinkBatch({NetlinkPlace{}},
                                       {{0, NETLINK_RDMA, rdmaSystemQuery(), false}}, -1, deadline);
  // Linux before 5.2 has neither this mode nor an attribute for it.
  return parseSharesDevices(answers.front().bytes).value_or(true) ? RdmaVisibility::all
                                                                  : RdmaVisibility::ownNamespace;
}

std::vector<Holder> unknownHolders(const FunctionFacts& function, const LinkSurvey& survey,
                                   RdmaVisibility rdma) {
  const std::string reason = reasonFor(function, survey, rdma);
  if (reason.empty()) {
    return {};
  }
  return {{HolderKind::unknown, function.address, reason,
           "make sure that nothing uses it, then unbind it from its driver or accept it with "
           "`allow: [unknown-holder]` in the mapping",
           std::nullopt}};
}

}  // namespace vfpass::host
