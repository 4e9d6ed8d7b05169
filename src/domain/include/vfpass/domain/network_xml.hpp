#pragma once

#include <string_view>

#include "vfpass/domain_facts.hpp"

namespace vfpass::domain {

/// The devices that a libvirt network assigns to domains: the functions listed by `<forward
/// mode='hostdev'>` and, in any mode, the PFs named by `<pf dev=>`. (An active network lists the
/// VFs that its PF had when it was started; an inactive one names only the PF.) Empty for any other
/// network. Throws Error (ExitCode::badInput) if the text is not a network.
NetworkPool readNetworkPool(std::string_view networkXml);

}  // namespace vfpass::domain
