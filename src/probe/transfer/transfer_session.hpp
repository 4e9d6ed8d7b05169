#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "channel/channel.hpp"
#include "transfer/side.hpp"
#include "transfer/transfer_settings.hpp"

namespace vfpass::probe {

/// The initiator's part of one measurement with the target that `channel` is connected to. The
/// report's `passed` says whether every byte on both sides was correct. Throws Error if the
/// measurement fails, and notifies the target. `runsLeft`: measurements, this one included, that
/// share the time until the channel's deadline.
nlohmann::json measure(Channel& channel, const Settings& settings, const Resources& resources,
                       const std::string& token, std::size_t runsLeft);

/// Notifies the target that there are no more measurements.
void endSession(Channel& channel);

/// The target's part: serves measurements until the initiator ends the session. `maxMemory` limits
/// the memory of one measurement, in bytes. The report lists what this side found; `passed` as
/// above.
nlohmann::json serve(Channel& channel, const Resources& resources, const std::string& token,
                     std::uint64_t maxMemory);

}  // namespace vfpass::probe
