#include "holders/unknown_holders.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <string>

#include "holders/netdev_holders.hpp"
#include "netlink_batch.hpp"
#include "rdma_message.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// Drivers that hand the device to a program or another guest and say nothing of it.
bool handsOut(const std::string& driver) {
  constexpr std::array<std::string_view, 4> drivers{"uio_pci_generic", "igb_uio", "xen-pciback",
                                                    "pciback"};
  return std::ranges::find(drivers, driver) != drivers.end() ||
         driver.find("vfio") != std::string::npos;
}

// Never drives the device, only keeps others off it.
bool reserves(const std::string& driver) { return driver == "pci-stub"; }

std::string boundTo(const FunctionFacts& function) {
  return "bound to " + printable(function.driver.substr(0, 64));
}

// One reason is enough; the first is the most precise.
std::string reasonFor(const FunctionFacts& function, const LinkSurvey& survey,
                      RdmaVisibility rdma) {
  if (!function.virtualDevices.empty()) {
    return function.virtualDevices.front() + " was made of it; cannot tell who uses that";
  }
  if (handsOut(function.driver)) {
    return boundTo(function) + ", which hands it to programs; cannot tell which";
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
           "hidden (`rdma system` says netns exclusive)";
  }
  return hasNetdev(function, survey) || !function.rdmaDevices.empty()
             ? std::string{}
             : boundTo(function) +
                   " but has no netdev in any network namespace; cannot tell who uses it";
}

}  // namespace

RdmaVisibility readRdmaVisibility(const Root& root, std::chrono::milliseconds deadline) {
  if (!root.exists("sys/class/infiniband")) {
    return RdmaVisibility::all;
  }
  const auto answers = runNetlinkBatch({NetlinkPlace{}},
                                       {{0, NETLINK_RDMA, rdmaSystemQuery(), false}}, -1, deadline);
  // Before Linux 5.2 there was no such mode, nor an answer that has it.
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
           "make sure that nobody uses it, then unbind it from its driver or allow it by `allow: "
           "[unknown-holder]` in the mapping",
           std::nullopt}};
}

}  // namespace vfpass::host
