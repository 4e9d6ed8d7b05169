#pragma once

#include <string>

#include "rdma/verbs_library.hpp"

namespace vfpass::probe {

/// Throws Error with the cause and its remedy unless data can be sent through this port. On
/// InfiniBand the cause is the port's state, a missing subnet manager or LID 0. `label` names the
/// port.
void requireUsablePort(const ibv_port_attr& attributes, const std::string& label);

/// Whether packets must have a global route header besides the LIDs. So it is on every RoCE port,
/// and on those InfiniBand ports, VFs among them, that share the LID of another port.
bool requiresGlobalHeader(const ibv_port_attr& attributes);

/// Remedy for a transfer that failed between two connected ports. `partition` is the P_Key in use,
/// on InfiniBand.
std::string pathRemedy(const ibv_port_attr& attributes, const std::string& partition);

}  // namespace vfpass::probe
