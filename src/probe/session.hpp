#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "channel.hpp"
#include "settings.hpp"
#include "side.hpp"

namespace vfpass::probe {

/// The initiator's part of one measurement with the target behind `channel`. The report's `passed`
/// says whether every byte on both sides was right. Throws Error for what kept it from being
/// measured; the target hears of that, too.
nlohmann::json measure(Channel& channel, const Settings& settings, const Resources& resources,
                       const std::string& token);

/// Tells the target that there are no more measurements.
void endSession(Channel& channel);

/// The target's part: serves measurements until the initiator ends the session. `mostMemory` is
/// what one of them may want, in bytes. Its report lists what this side found; `passed` as above.
nlohmann::json serve(Channel& channel, const Resources& resources, const std::string& token,
                     std::uint64_t mostMemory);

}  // namespace vfpass::probe
