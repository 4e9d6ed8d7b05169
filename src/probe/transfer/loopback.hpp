#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "channel/channel.hpp"
#include "transfer/side.hpp"
#include "transfer/transfer_settings.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::probe {

/// Runs both sides in this process over a socket pair, the target in its own thread, with the same
/// code as between two machines. Returns the initiator's report. Throws Error.
nlohmann::json loopback(const std::vector<Settings>& runs, const Resources& resources,
                        const Deadline& deadline);

/// The initiator's side of all runs. `channel` is connected to the target.
nlohmann::json measureAll(Channel& channel, const std::vector<Settings>& runs,
                          const Resources& resources, const std::string& token);

}  // namespace vfpass::probe
