#include "judge_network.hpp"

#include <algorithm>

#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

const GuestPort* findPort(const GuestView& view, const RdmaPort& port) {
  for (const auto& device : view.rdmaDevices) {
    const auto found = std::ranges::find(device.ports, port.number, &GuestPort::number);
    if (device.name == port.device && found != device.ports.end()) {
      return &*found;
    }
  }
  return nullptr;
}

std::string rounded(double share) {
  const auto thousandths = static_cast<int>(share * 1000 + 0.5);
  const std::string digits = std::to_string(thousandths % 1000);
  return std::to_string(thousandths / 1000) + "." + std::string(3 - digits.size(), '0') + digits;
}

Finding judgeMtu(const std::string& subject, const RdmaPort& port, const GuestView& view,
                 std::optional<unsigned> wanted) {
  const auto netdev = std::ranges::find(view.netdevs, port.netdev, &GuestNetdev::name);
  const unsigned mtu = netdev == view.netdevs.end() ? 0 : netdev->mtu.value_or(0);
  std::string seen = mtu != 0 ? port.netdev + " " + std::to_string(mtu) + ", " : "";
  seen += port.mtu == 0 ? "RDMA unknown"
                        : "RDMA " + std::to_string(port.mtu) + ": headers leave " +
                              rounded(wireShare(port.wire, false, port.mtu)) + " of the rate";
  const std::string expected = wanted ? "MTU " + std::to_string(*wanted) + " from the mapping"
                                      : "an MTU with low header overhead";
  if (wanted && mtu != 0 && mtu != *wanted) {
    return {"mtu",
            subject,
            Outcome::warning,
            expected,
            seen,
            "run vfpass guest-setup, or in the guest: ip link set dev " +
                shellArgument(port.netdev) + " mtu " + std::to_string(*wanted)};
  }
  constexpr unsigned smallMtu = 1024;
  if (port.mtu != 0 && port.mtu <= smallMtu) {
    return {
        "mtu",
        subject,
        Outcome::warning,
        expected,
        seen,
        "set guest: {mtu: 9000} in the mapping and run vfpass guest-setup; RDMA uses 4096 if the "
        "Ethernet MTU is at least 4200 in the guest, on the PF and on the switches"};
  }
  return {"mtu", subject, Outcome::passed, expected, seen, ""};
}

bool isLinkLocal(const GuestGid& gid) { return toLower(gid.gid).starts_with("fe80:"); }

}  // namespace

std::vector<Finding> judgeNetworkSettings(const std::string& subject, const RdmaPort& port,
                                          const GuestView& view, std::optional<unsigned> wanted) {
  std::vector<Finding> findings{judgeMtu(subject, port, view, wanted)};
  const GuestPort* found = findPort(view, port);
  const GuestGid* gid = found == nullptr ? nullptr : chosenGid(*found);
  if (gid == nullptr || port.wire == Wire::infiniband) {
    return findings;
  }
  const std::string seen =
      "index " + std::to_string(found->gidIndex.value_or(0)) + ", " + gid->type + " " + gid->gid;
  const std::string expected = "a RoCE v2 GID with an IP address";
  if (port.wire == Wire::roceV1) {
    findings.push_back(
        {"gid-type", subject, Outcome::warning, expected, "RoCE v1 only: " + seen,
         "give " + printable(port.netdev) +
             " an IP address in the guest (vfpass guest-setup); RoCE v1 cannot be routed: a card "
             "without RoCE v2 works within one network, with NCCL_IB_GID_INDEX set to this index"});
  } else if (isLinkLocal(*gid)) {
    findings.push_back({"gid-type", subject, Outcome::warning, expected,
                        "only a link-local address: " + seen,
                        "set guest: {address: ...} in the mapping, then run vfpass guest-setup"});
  } else {
    findings.push_back({"gid-type", subject, Outcome::passed, expected,
                        seen + "; NCCL_IB_GID_INDEX=" + std::to_string(found->gidIndex.value_or(0)),
                        ""});
  }
  return findings;
}

}  // namespace vfpass::verify
