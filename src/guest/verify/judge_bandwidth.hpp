#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge_device.hpp"
#include "limits.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// The limit of transfers of this memory (`host`, `gpu`) on this port. Uses the port rate that the
/// host reports, or else the guest's, and the rate limit of the lease. nullopt for SoftRoCE, whose
/// rate is meaningless, and when nothing is known.
std::optional<Limit> limitFor(const Lease& lease, const RdmaPort& port, const HostSide& host,
                              const std::string& memory, Ends ends);

/// Compares the best figure of this memory with a share of the limit. Waived for a software device;
/// a warning if the figure shows that the limit is wrong. Pure.
Finding judgeBandwidth(const std::string& subject, const std::string& memory, const RdmaPort& port,
                       const std::optional<Limit>& limit, double minimumShare,
                       const std::vector<Figure>& figures);

/// Notes the limit in the figures of this memory from `first` on, then judges them; nullopt if no
/// share of the limit is required and the limit is plausible.
std::optional<Finding> compareWithLimit(const std::string& subject, const std::string& memory,
                                        const RdmaPort& port, const std::optional<Limit>& limit,
                                        const std::optional<double>& minimumShare,
                                        std::size_t first, std::vector<Figure>& figures);

/// Those from `first` on: a VF's figures of one GPU, without those of its other GPUs.
std::vector<Figure> figuresFrom(std::size_t first, const std::vector<Figure>& figures);

/// Compares each GPU figure with the host memory figure of its session. Warns when GPU memory is
/// much slower, with the likely causes from the placement on the host and in the guest. nullopt
/// without such figures.
std::optional<Finding> judgeBesideHost(const std::string& subject,
                                       const std::vector<Figure>& figures,
                                       const std::optional<GpuPath>& path,
                                       const std::string& guestDistance);

/// Figures with and without relaxed ordering, for information; nullopt unless both were measured.
std::optional<Finding> judgeOrdering(const std::string& subject,
                                     const std::vector<Figure>& figures);

}  // namespace vfpass::verify
