#pragma once

#include "vfpass/session/command_session.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::session {

/// Sets the model names of the devices, for output. Without libpci they stay empty, with a warning:
/// the output then has the devices' numbers or only their addresses.
void nameModels(Session& session, Inventory& inventory);
void nameModels(Session& session, Topology& topology);

}  // namespace vfpass::session
