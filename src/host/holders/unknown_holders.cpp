#include "holders/unknown_holders.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <string>

#include "holders/netdev_holders.hpp"
#include "netlink/netlink_batch.hpp"
#include "netlink/rdma_message.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
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
  if (rdma == RdmaVisibility::ownNamespace && function.rdmaDevices.empty() &&
      function.driver == "mlx5_core" && survey.namespaces.size() > 1) {
    return boundTo(function) +
           " without a visible RDMA device, and RDMA devices of other network namespaces are "
           "hidden (`rdma system` reports netns exclusive)";
  }
  // An RDMA device on Ethernet is created for a netdev; where that netdev is not found, it is in a
  // namespace that is not found either.
  const bool needsNetdev =
      function.rdmaDevices.empty() || function.linkLayer == LinkLayer::ethernet;
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
