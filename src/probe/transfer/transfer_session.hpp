#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "channel/channel.hpp"
#include "transfer/side.hpp"
#include "transfer/transfer_settings.hpp"

namespace vfpass::probe {

/// The initiator's part of all measurements with the target that `channel` is connected to. The
/// report's `passed` says whether every byte on both sides was correct. Throws Error if a
/// measurement fails, and notifies the target.
nlohmann::json measureAll(Channel& channel, const std::vector<Settings>& runs,
                          const Resources& resources, const std::string& token);

/// The target's part: serves measurements until the initiator ends the session. `maxMemory` limits
/// the memory of one measurement, in bytes. The report lists what this side found; `passed` as
/// above.
nlohmann::json serve(Channel& channel, const Resources& resources, const std::string& token,
                     std::uint64_t maxMemory);

}  // namespace vfpass::probe
