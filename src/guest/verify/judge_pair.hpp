#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "judge_transfer.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::verify {

/// Both probes' reports on one session; of a loopback that of its only probe, `initiator`.
struct PairReports {
  nlohmann::json initiator;
  nlohmann::json target;
  bool loopback = false;
};

/// The remedy for reports that contradict each other.
inline constexpr const char* otherBuilds =
    "check that both guests run the probe of this vfpass build";

/// The error that caused the session to fail; empty: none. Untrusted.
std::string errorOf(const PairReports& reports);
/// The remedy that the same probe reports with it.
std::string remedyOf(const PairReports& reports);

/// Whether the two VFs are in the same network, from link layer and VLAN of both leases.
Finding judgeNetwork(const std::string& subject, const Lease& initiator, const Lease& target);

/// Whether messages arrived in both directions. `guestSetups`: of both VMs, for the remedy.
Finding judgeReach(const std::string& subject, const PairReports& reports,
                   const std::string& guestSetups);

/// As judgeTransfer(); between two guests, the one that owns the written memory must also itself
/// report that it checked all bytes.
Finding judgePairTransfer(const Transfer& transfer, const PairReports& reports,
                          std::vector<Figure>& figures);

/// As judgeLatency(); between two guests, the target must also report that its part passed.
Finding judgePairLatency(const Transfer& latency, const PairReports& reports,
                         std::vector<Figure>& figures);

/// As judgeSizes(); between two guests, the target must also report that its part passed.
Finding judgePairSizes(const Transfer& transfer, const PairReports& reports,
                       std::vector<Figure>& figures);

/// Why rdma_cm cannot be tried at this port of the guest: no librdmacm, or no IP address. Empty: it
/// can. Pure.
std::string whyNoRdmaCm(const GuestView& view, const RdmaPort& port);

/// The finding for a pair of which one end cannot try. Nothing is broken then: only applications
/// that connect by rdma_cm need it.
Finding rdmaCmNotTried(const std::string& subject, const std::string& reason);

/// Whether both probes connected by rdma_cm and the target reports that it checked all bytes. Pure.
Finding judgeRdmaCm(const std::string& subject, std::uint64_t bytes, const PairReports& reports);

/// The IP address that a RoCE GID stands for: IPv4 if the GID is an IPv4-mapped address, otherwise
/// IPv6 (kernel, rdma_ip2gid). nullopt for another text. Pure.
std::optional<std::string> addressOfGid(const std::string& gid);

/// A GID as an IPv6 address in its short form, IPv4 as `::ffff:10.99.0.1`; another text as it is.
std::string readableGid(const std::string& gid);

/// Judges the initiating probe's report on `ping`. Without a reply the finding is a warning: RDMA
/// does not need ICMP, which a firewall may drop. Pure.
Finding judgePing(const std::string& subject, const std::string& interface,
                  const std::string& address, const nlohmann::json& report,
                  const std::string& guestSetups);

/// The finding for a pair without an IP address to ping.
Finding noAddressToPing(const std::string& subject, const std::string& reason);

}  // namespace vfpass::verify
