#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge_device.hpp"
#include "limits.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/guest/host_side.hpp"

namespace vfpass::guest {

/// What limits transfers of this memory (`host`, `gpu`) on this port. The port's rate is the host's
/// word where the host knows it, and otherwise the guest's. nullopt for SoftRoCE, whose rate means
/// nothing, and where nothing is known.
std::optional<Limit> limitFor(const Lease& lease, const RdmaPort& port, const HostSide& host,
                              const std::string& memory, Ends ends);

/// The best figure of this memory against a share of the limit. Pure. Waived for a software device.
Finding judgeBandwidth(const std::string& subject, const std::string& memory, const RdmaPort& port,
                       const std::optional<Limit>& limit, double minimumShare,
                       const std::vector<Figure>& figures);

/// Each GPU figure beside the host figure of its session; a warning where the GPU is far below,
/// with what the host's and the guest's placement make likely. nullopt without such figures.
std::optional<Finding> judgeBesideHost(const std::string& subject,
                                       const std::vector<Figure>& figures,
                                       const std::optional<GpuWay>& way,
                                       const std::string& guestDistance);

/// Relaxed ordering on beside off, for information; nullopt unless both were run.
std::optional<Finding> judgeOrdering(const std::string& subject,
                                     const std::vector<Figure>& figures);

}  // namespace vfpass::guest
