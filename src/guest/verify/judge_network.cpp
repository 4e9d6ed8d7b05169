#include "judge_device.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <vector>

#include "judge_guest.hpp"
#include "judge_pair.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

constexpr unsigned fullMember = 0x8000;
constexpr unsigned numberMask = 0x7fff;

// virt_enabled lets opensm configure the ports of VFs.
constexpr const char* startManager =
    "start a subnet manager (opensm) on the fabric, with virt_enabled 2 in its opensm.conf";
constexpr const char* joinPartition =
    "add the VF's port GUID to a partition in the subnet manager's partitions.conf (as a full "
    "member if it has to reach limited members, such as itself), then restart it";

std::string lidText(const std::optional<unsigned>& number) {
  return number ? std::to_string(*number) : "unknown";
}

bool has(const GuestPort& port, const char* state) {
  return port.state.find(state) != std::string::npos;
}

std::string keysOf(const GuestPort& port) {
  constexpr std::size_t most = 8;
  std::vector<std::string> keys;
  for (const std::uint16_t key : port.partitions) {
    if (keys.size() < most) {
      keys.push_back(hexadecimal(key));
    }
  }
  return join(keys, ", ") + (port.partitions.size() > most ? ", ..." : "");
}

std::string threeDecimals(double share) {
  const auto thousandths = static_cast<int>(share * 1000 + 0.5);
  const std::string digits = std::to_string(thousandths % 1000);
  return std::to_string(thousandths / 1000) + "." + std::string(3 - digits.size(), '0') + digits;
}

Finding judgeMtu(const std::string& subject, const RdmaPort& port, const GuestView& view,
                 const WantedInGuest& inMapping) {
  const std::optional<unsigned> wanted = inMapping.mtu;
  const auto netdev = std::ranges::find(view.netdevs, port.netdev, &GuestNetdev::name);
  const unsigned mtu = netdev == view.netdevs.end() ? 0 : netdev->mtu.value_or(0);
  std::string seen = mtu != 0 ? port.netdev + " " + std::to_string(mtu) + ", " : "";
  seen += port.mtu == 0 ? "RDMA unknown"
                        : "RDMA " + std::to_string(port.mtu) + ": headers leave " +
                              threeDecimals(wireShare(port.wire, false, port.mtu)) + " of the rate";
  const std::string expected = wanted ? "MTU " + std::to_string(*wanted) + " from the mapping"
                                      : "an MTU with low header overhead";
  if (wanted && mtu != 0 && mtu != *wanted) {
    return {"mtu",
            subject,
            Outcome::warning,
            expected,
            seen,
            "run " + guestSetupOf(inMapping.vm) + ", or in the guest: ip link set dev " +
                shellArgument(port.netdev) + " mtu " + std::to_string(*wanted)};
  }
  constexpr unsigned smallMtu = 1024;
  if (port.mtu != 0 && port.mtu <= smallMtu) {
    return {"mtu",
            subject,
            Outcome::warning,
            expected,
            seen,
            (wanted ? "raise guest: {mtu: " + std::to_string(*wanted) + "}"
                    : std::string("set guest: {mtu: 9000}")) +
                " in the mapping and run " + guestSetupOf(inMapping.vm) +
                "; RDMA uses 4096 if the Ethernet MTU is at least 4200 in the guest, on the PF and "
                "on the switches"};
  }
  return {"mtu", subject, Outcome::passed, expected, seen, ""};
}

bool isLinkLocal(const GuestGid& gid) { return toLower(gid.gid).starts_with("fe80:"); }

}  // namespace

std::string guestSetupOf(const std::string& vm) {
  return "`vfpass guest-setup" + (vm.empty() ? "" : " " + shellArgument(vm)) + "`";
}

std::string guestSetupOf(const std::vector<Lease>& leases) {
  return guestSetupOf(leases.empty() ? std::string() : leases.front().domainName);
}

std::string addressRemedy(const WantedInGuest& wanted) {
  return wanted.address.empty()
             ? "set guest: {address: ...} in the mapping, then run " + guestSetupOf(wanted.vm)
             : "run " + guestSetupOf(wanted.vm) + ", which sets the mapping's address " +
                   wanted.address;
}

std::string lidsOf(const GuestPort& port) {
  return "LID " + lidText(port.localId) + ", subnet manager's LID " + lidText(port.managerId);
}

std::optional<Finding> judgeSubnet(const std::string& subject, const std::string& device,
                                   const GuestPort& port) {
  Finding finding{"port",
                  subject,
                  Outcome::failed,
                  "port of " + device + " is active, with a LID",
                  port.state + ", " + lidsOf(port),
                  startManager};
  // The subnet manager moves a port with a link from INIT through ARMED to ACTIVE.
  if (has(port, "INIT") || has(port, "ARMED")) {
    finding.seen += ": no subnet manager has activated it";
    return finding;
  }
  if (!has(port, "ACTIVE")) {
    finding.remedy =
        std::string(
            "check on the host that the PF's link is up and that the VF's link-state is "
            "not disable; ") +
        startManager;
    return finding;
  }
  // Every packet has a destination LID, and 0 is reserved.
  if (port.localId == 0U) {
    finding.seen += port.managerId == 0U ? ": no subnet manager has configured it"
                                         : ": the subnet manager has assigned no LID";
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> judgePartitions(const std::string& subject, const GuestPort& port) {
  if (!port.partitionsReported) {
    return std::nullopt;
  }
  const std::string expected = "full membership in a partition (P_Key)";
  const auto isMember = [](std::uint16_t key) { return (key & numberMask) != 0; };
  const auto isFull = [&](std::uint16_t key) { return isMember(key) && (key & fullMember) != 0; };
  if (std::ranges::none_of(port.partitions, isMember)) {
    return Finding{"p-key", subject, Outcome::failed, expected, "no P_Key", joinPartition};
  }
  if (std::ranges::none_of(port.partitions, isFull)) {
    return Finding{"p-key",
                   subject,
                   Outcome::warning,
                   expected,
                   keysOf(port) + ": limited member, which reaches full members only",
                   joinPartition};
  }
  return Finding{"p-key", subject, Outcome::passed, expected, keysOf(port), ""};
}

std::vector<Finding> judgeNetworkSettings(const std::string& subject, const RdmaPort& port,
                                          const GuestView& view, const WantedInGuest& wanted) {
  std::vector<Finding> findings{judgeMtu(subject, port, view, wanted)};
  const GuestPort* found = findPort(view, port.device, port.number);
  const GuestGid* gid = found == nullptr ? nullptr : chosenGid(*found);
  if (gid == nullptr || port.wire == Wire::infiniband) {
    return findings;
  }
  const std::string seen = "index " + std::to_string(found->gidIndex.value_or(0)) + ", " +
                           gid->type + " " + readableGid(gid->gid);
  const std::string expected = "a RoCE v2 GID with an IP address";
  if (port.wire == Wire::roceV1) {
    findings.push_back(
        {"gid-type", subject, Outcome::warning, expected, "RoCE v1 only: " + seen,
         addressRemedy(wanted) +
             "; RoCE v1 cannot be routed: a card "
             "without RoCE v2 works within one network, with NCCL_IB_GID_INDEX set to this index"});
  } else if (isLinkLocal(*gid)) {
    findings.push_back({"gid-type", subject, Outcome::warning, expected,
                        "only a link-local address: " + seen, addressRemedy(wanted)});
  } else if (!hasGidOf(*found, wanted.address)) {
    findings.push_back({"gid-type", subject, Outcome::warning,
                        expected + ", which is that of the mapping: " + wanted.address,
                        seen + "; no GID has the mapping's address", addressRemedy(wanted)});
  } else {
    findings.push_back({"gid-type", subject, Outcome::passed, expected,
                        seen + "; NCCL_IB_GID_INDEX=" + std::to_string(found->gidIndex.value_or(0)),
                        ""});
  }
  if (const auto index = judgeNcclGidIndex(subject, *found, view, wanted)) {
    findings.push_back(*index);
  }
  return findings;
}

namespace {

using AddressBytes = std::array<unsigned char, sizeof(in6_addr)>;

// Of a GID or an IP address with or without prefix length; IPv4 as in a GID, ::ffff:a.b.c.d.
std::optional<AddressBytes> bytesOf(const std::string& text) {
  const std::string address = text.substr(0, std::min<std::size_t>(text.find('/'), 64));
  const bool four = address.find(':') == std::string::npos;
  AddressBytes bytes{};
  const std::string whole = (four ? "::ffff:" : "") + address;
  return ::inet_pton(AF_INET6, whole.c_str(), bytes.data()) == 1 ? std::optional(bytes)
                                                                 : std::nullopt;
}

const GuestGid* gidAt(const GuestPort& port, unsigned index) {
  const auto found = std::ranges::find_if(port.gids, [index](const GuestGid& each) {
    return each.index && static_cast<unsigned>(*each.index) == index;
  });
  return found == port.gids.end() ? nullptr : &*found;
}

std::string describe(unsigned index, const GuestGid* gid) {
  return "index " + std::to_string(index) + " (" +
         (gid == nullptr ? "no GID" : gid->type + " " + readableGid(gid->gid)) + ")";
}

// Why NCCL cannot use the GID as it should; empty: it can. `chosen`: the one that the probe found.
std::string problemOf(const GuestGid* gid, const GuestGid& chosen, const std::string& address) {
  if (gid == nullptr) {
    return "the index has no GID, so NCCL cannot connect";
  }
  if (gid->type.find("v2") == std::string::npos && chosen.type.find("v2") != std::string::npos) {
    return "it is not RoCE v2, which routers and congestion control need";
  }
  const bool local = toLower(gid->gid).starts_with("fe80:");
  if (local && !toLower(chosen.gid).starts_with("fe80:")) {
    return "it is a link-local address, which is not routed";
  }
  const auto wanted = bytesOf(address);
  if (wanted && bytesOf(chosen.gid) == wanted && bytesOf(gid->gid) != wanted) {
    return "it is not the address of the mapping, " + address;
  }
  return {};
}

std::string remedyFor(int found, const std::string& vm) {
  return "set nccl: {gid-index: " + std::to_string(found) + "} in the mapping, then run " +
         guestSetupOf(vm) +
         "; or remove NCCL_IB_GID_INDEX from "
         "the mapping and from /etc/nccl.conf if NCCL is 2.21 or later, which chooses by itself, "
         "and "
         "if the VFs need different indices";
}

}  // namespace

bool hasGidOf(const GuestPort& port, const std::string& address) {
  const auto wanted = bytesOf(address);
  return !wanted || std::ranges::any_of(port.gids, [&](const GuestGid& each) {
    return bytesOf(each.gid) == wanted;
  });
}

std::optional<Finding> judgeNcclGidIndex(const std::string& subject, const GuestPort& port,
                                         const GuestView& view, const WantedInGuest& wanted) {
  const auto inGuest = view.nccl ? view.nccl->gidIndex : std::nullopt;
  const auto configured = inGuest ? inGuest : wanted.gidIndex;
  const GuestGid* chosen = chosenGid(port);
  if (chosen == nullptr || (!configured && !view.nccl)) {
    return std::nullopt;
  }
  Finding finding{"nccl-gid-index",
                  subject,
                  Outcome::waived,
                  "NCCL_IB_GID_INDEX names a GID of RoCE v2 with the VF's address, such as " +
                      describe(static_cast<unsigned>(*port.gidIndex), chosen),
                  "not set: NCCL 2.21 and later choose the GID, earlier ones use index 0",
                  ""};
  if (!configured) {
    return finding;
  }
  const GuestGid* gid = gidAt(port, *configured);
  finding.seen = (inGuest ? "/etc/nccl.conf: " : "the mapping: ") + describe(*configured, gid);
  const std::string problem = problemOf(gid, *chosen, wanted.address);
  const bool written = inGuest || !view.nccl;
  const bool differs = inGuest && wanted.gidIndex && *inGuest != *wanted.gidIndex;
  if (!problem.empty()) {
    finding.outcome = Outcome::warning;
    finding.seen += ": " + problem;
    finding.remedy = remedyFor(*port.gidIndex, wanted.vm);
  } else if (differs || !written) {
    finding.outcome = Outcome::warning;
    finding.seen += differs ? "; the mapping: index " + std::to_string(*wanted.gidIndex)
                            : "; /etc/nccl.conf in the guest does not set it";
    finding.remedy = "run " + guestSetupOf(wanted.vm) + ", which writes the mapping's index";
  } else {
    finding.outcome = Outcome::passed;
  }
  return finding;
}

}  // namespace vfpass::verify
