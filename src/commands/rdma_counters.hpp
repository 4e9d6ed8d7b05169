#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/host/device_statistics.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::commands {

/// `rdma-counters`: whether the VF moved at least as many bytes by RDMA as the figures of the
/// report claim, by counters that leave Ethernet packets out. A warning if not: SoftRoCE sends
/// Ethernet packets, and so does a guest that invents its report. Waived without such counters.
/// Pure.
Finding judgeRdmaBytes(const std::string& entry, const std::vector<Figure>& figures,
                       const std::optional<host::RdmaBytes>& before,
                       const std::optional<host::RdmaBytes>& after);

/// The RDMA bytes of a guest's VFs during its verification, as the host counts them.
class RdmaCounters {
 public:
  /// Reads the counters of these VFs. `session` must outlive this object.
  RdmaCounters(Session& session, std::vector<Lease> vfs);

  /// Reads them again, and adds a finding for each VF that has figures.
  void judge(VerifyReport& report) const;

 private:
  [[nodiscard]] std::map<std::string, std::optional<host::RdmaBytes>> read() const;

  Session& session_;
  std::vector<Lease> vfs_;
  std::map<std::string, std::optional<host::RdmaBytes>> before_;  ///< by entry
};

}  // namespace vfpass::commands
