#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::commands {

/// What a VF moved by RDMA according to the figures of a report.
struct RdmaClaim {
  std::string subject;      ///< of the finding
  std::uint64_t bytes = 0;  ///< 0: nothing
  /// The other VF of a pair receives what this one sends. In loopback, the VF does both.
  bool eitherDirection = false;
};

/// Of a verification within one guest.
RdmaClaim claimInLoopback(const std::string& entry, const std::vector<Figure>& figures);

/// Of one between two guests. `prefix`: `train1:` for a VF of the peer, otherwise empty.
RdmaClaim claimOfPairs(const std::string& prefix, const std::string& entry,
                       const std::vector<Figure>& figures);

/// `rdma-counters`: whether the VF moved at least as many bytes by RDMA as claimed, by counters
/// that leave Ethernet packets out. A warning if not: SoftRoCE sends Ethernet packets, and so does
/// a guest that invents its report. Waived without such counters. Pure.
Finding judgeRdmaBytes(const RdmaClaim& claim, const std::optional<VfTraffic>& before,
                       const std::optional<VfTraffic>& after);

/// The RDMA bytes of a guest's VFs during its verification, as the host counts them.
class RdmaCounters {
 public:
  /// Reads the counters of these VFs. `session` must outlive this object.
  RdmaCounters(Session& session, std::vector<Lease> vfs);

  /// Bytes only, of one of these VFs now; nullopt: the host cannot tell them apart.
  [[nodiscard]] std::optional<VfTraffic> of(const Lease& vf) const;

  /// Reads them again, and adds a finding for each VF that has figures.
  void judge(VerifyReport& report) const;
  /// The same of a verification between two guests.
  void judgePairs(const std::string& prefix, VerifyReport& report) const;

 private:
  void judgeClaim(const Lease& vf, const RdmaClaim& claim, VerifyReport& report) const;

  std::vector<Lease> vfs_;
  std::map<std::string, std::string> representors_;         ///< by entry
  std::map<std::string, std::optional<VfTraffic>> before_;  ///< by entry
};

}  // namespace vfpass::commands
