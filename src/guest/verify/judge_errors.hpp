#pragma once

#include <optional>
#include <string>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// `rdma-errors`: the error counters of a port that have increased between two reports of the
/// guest. Lost packets, a bad link and a receiver that is not ready are a warning; notifications of
/// congestion are shown for information. `after`: null if the guest did not report it, which waives
/// the check. nullopt for a probe, or a driver, without counters. Pure.
std::optional<Finding> judgeRdmaErrors(const std::string& subject, const RdmaPort& port,
                                       const GuestView& before, const GuestView* after);

}  // namespace vfpass::verify
