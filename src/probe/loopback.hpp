#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "channel.hpp"
#include "deadline.hpp"
#include "settings.hpp"
#include "side.hpp"

namespace vfpass::probe {

/// Both sides in this process, the target in a thread of its own, over a socket pair: the same code
/// as between two machines. A list of reports. Throws Error.
nlohmann::json loopback(const std::vector<Settings>& runs, const Resources& resources,
                        const Deadline& deadline);

/// The initiator's side of all runs. `channel` leads to the target.
nlohmann::json measureAll(Channel& channel, const std::vector<Settings>& runs,
                          const Resources& resources, const std::string& token);

}  // namespace vfpass::probe
