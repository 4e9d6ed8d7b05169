#include "judge_guest.hpp"
#include "judge_network.hpp"
#include "judge_pair.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
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
