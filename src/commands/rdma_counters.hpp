#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::commands {

/// What a VF moved by RDMA according to the figures of a report.
struct RdmaClaim {
  std::string subject;  ///< of the finding
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  /// The VF does both: one of the counters has to show it.
  bool isLoopback = false;
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

/// Reads the RDMA bytes of one of these VFs, without packets, from its representor on this host;
/// nullopt: the host cannot tell them apart.
verify::ReadTraffic rdmaReader(Session& session, const std::vector<Lease>& vfs);

/// The RDMA bytes of a guest's VFs during its verification, as its host counts them.
class RdmaCounters {
 public:
  /// Reads the counters of these VFs by `read`, which may be empty.
  RdmaCounters(std::vector<Lease> vfs, verify::ReadTraffic read);

  [[nodiscard]] std::optional<VfTraffic> of(const Lease& vf) const;

  /// Reads them again, and adds a finding for each VF that has figures.
  void judge(VerifyReport& report) const;
  /// The same of a verification between two guests.
  void judgePairs(const std::string& prefix, VerifyReport& report) const;

 private:
  void judgeClaim(const Lease& vf, const RdmaClaim& claim, VerifyReport& report) const;

  std::vector<Lease> vfs_;
  verify::ReadTraffic read_;
  std::map<std::string, std::optional<VfTraffic>> before_;  ///< by entry
};

}  // namespace vfpass::commands
