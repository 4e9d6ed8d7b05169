#pragma once

#include <string_view>

#include "vfpass/network_pool.hpp"

namespace vfpass::domain {

/// What a libvirt network hands out to domains: the functions listed by `<forward mode='hostdev'>`
/// and, whatever the mode, the PFs named by `<pf dev=>`. (An active network lists the VFs that its
/// PF had when it was started, an inactive one names the PF alone.) Empty for any other network.
/// Throws Error (ExitCode::badInput) for what is no network XML.
NetworkPool readNetworkPool(std::string_view networkXml);

}  // namespace vfpass::domain
