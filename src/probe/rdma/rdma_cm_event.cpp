#include "rdma/rdma_cm_event.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

/// enum ib_cm_rej_reason of the kernel (include/rdma/ib_cm.h).
struct Rejection {
  int reason;
  std::string_view name;
};
constexpr int invalidServiceId = 8;
constexpr int consumerDefined = 28;
constexpr std::array<Rejection, 12> rejections{{{1, "no queue pair"},
                                                {3, "no resources"},
                                                {4, "timeout"},
                                                {5, "unsupported request"},
                                                {invalidServiceId, "invalid service ID"},
                                                {10, "stale connection"},
                                                {12, "invalid GID"},
                                                {13, "invalid LID"},
                                                {14, "invalid service level"},
                                                {16, "invalid hop limit"},
                                                {26, "invalid MTU"},
                                                {consumerDefined, "consumer defined"}}};

std::string ends(const RdmaCmPath& path) {
  return toString(path.own) + " (" + path.device + ") and " + toString(path.peer);
}

std::string statusText(const RdmaCmEvent& event) {
  if (event.type != RDMA_CM_EVENT_REJECTED) {
    return event.status < 0 ? errnoText(-event.status) : "status " + std::to_string(event.status);
  }
  const auto* known = std::ranges::find(rejections, event.status, &Rejection::reason);
  std::string text = event.status < 0            ? errnoText(-event.status)
                     : known == rejections.end() ? "reason " + std::to_string(event.status)
                                                 : "reason " + std::to_string(event.status) + ", " +
                                                       std::string(known->name);
  if (event.status == consumerDefined && !event.privateData.empty()) {
    text += ": " + printable(event.privateData);
  }
  return text;
}

std::string addressRemedy(const RdmaCmEvent& event, const RdmaCmPath& path) {
  const std::string peer = toString(path.peer);
  const std::string own = toString(path.own);
  if (event.status == -ETIMEDOUT || event.status == -EHOSTUNREACH) {
    return "check that ip neighbour show lists " + peer + " on the interface of " + path.device +
           "; if several interfaces are in one network, set arp_ignore 1 and arp_announce 2 on "
           "both sides (vfpass guest-setup)";
  }
  return "check that ip route get " + peer + " from " + own + " names the interface of " +
         path.device + "; give both interfaces addresses of one subnet (vfpass guest-setup)";
}

std::string rejectionRemedy(const RdmaCmEvent& event, const RdmaCmPath& path) {
  if (event.status == invalidServiceId) {
    return "check that only the other side's VF has the address " + toString(path.peer) +
           " (ip neighbour show): the host that received the request does not listen";
  }
  return event.status == consumerDefined ? "resolve what the other side's program reports"
                                         : "check dmesg and the probe's output on the other side";
}

std::string remedyFor(const RdmaCmEvent& event, const RdmaCmPath& path) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return addressRemedy(event, path);
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return "on InfiniBand, check that the subnet manager runs (sminfo) and that both IPoIB "
             "interfaces have one P_Key; on Ethernet, check that the link of " +
             path.device + " is up (rdma link show)";
    case RDMA_CM_EVENT_UNREACHABLE:
      return "no answer to the connection request: on Ethernet, let firewalls and switches pass "
             "UDP port 4791, and check VLAN and MTU on both sides; on InfiniBand, check P_Key and "
             "subnet manager";
    case RDMA_CM_EVENT_REJECTED:
      return rejectionRemedy(event, path);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "the driver has removed " + path.device + ": check dmesg";
    default:
      return "check dmesg and the probe's output on both sides";
  }
}

}  // namespace

Error errorOf(const RdmaCmEvent& event, const std::string& name, const RdmaCmPath& path) {
  return Error("rdma_cm cannot connect " + ends(path) + ": " + name + ": " + statusText(event),
               remedyFor(event, path));
}

Error rdmaCmCallError(const std::string& what, int error, const std::string& remedy) {
  if (error == EACCES || error == EPERM) {
    return Error(what + ": " + errnoText(error),
                 "run as root, or allow access to /dev/infiniband/rdma_cm");
  }
  return Error(what + ": " + errnoText(error), remedy.empty() ? "check dmesg" : remedy);
}

}  // namespace vfpass::probe
