#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Settings that work but are not optimal: an MTU that differs from the mapping's (`wanted`), and
/// the type of GID. Pure.
std::vector<Finding> judgeNetworkSettings(const std::string& subject, const RdmaPort& port,
                                          const GuestView& view, std::optional<unsigned> wanted);

}  // namespace vfpass::verify
