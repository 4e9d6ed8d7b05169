#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/hand_over.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::state {

/// The whole lease, including state and boot, as one line of JSON.
std::string leaseToJson(const Lease& lease);
/// The exact inverse. Throws Error for a record of a newer version, CorruptDatabase for invalid
/// JSON.
Lease leaseFromJson(std::string_view text);

/// The record of the end of a lease as one line of JSON, which is what its seal covers.
std::string handOverToJson(const HandOverRecord& record);
/// The exact inverse. Throws as leaseFromJson().
HandOverRecord handOverFromJson(std::string_view text);

/// What is known of a leased device, as one line of JSON.
std::string deviceUseToJson(const DeviceUse& use);
/// The exact inverse. Throws as leaseFromJson().
DeviceUse deviceUseFromJson(std::string_view text);

/// One action as one line of JSON: its members, and its kind in member `do`.
std::string actionToJson(const Action& action);
/// The exact inverse. Throws Error for a record of a newer version, CorruptDatabase for invalid
/// JSON.
Action actionFromJson(std::string_view text);

/// The undo list of a step, in order.
std::string actionsToJson(const std::vector<Action>& actions);
std::vector<Action> actionsFromJson(std::string_view text);

}  // namespace vfpass::state
