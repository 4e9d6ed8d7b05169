#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::guest {

/// What works, and should be otherwise: the MTU against the mapping's (`wanted`), and which kind of
/// GID there is to use. Pure.
std::vector<Finding> judgeNetworkSettings(const std::string& subject, const RdmaPort& port,
                                          const GuestView& view, std::optional<unsigned> wanted);

}  // namespace vfpass::guest
