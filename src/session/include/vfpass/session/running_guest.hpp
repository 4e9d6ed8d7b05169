#pragma once

#include <string>
#include <vector>

#include "vfpass/hypervisor.hpp"
#include "vfpass/session/command_session.hpp"

namespace vfpass::session {

/// The domain, which must be running for `command` (`guest-setup`, `verify`). Throws badInput if it
/// does not exist, unverified if it is not running.
DomainDescription runningGuest(Session& session, const std::string& vm, const std::string& command);

/// Leases that the running domain uses. Throws (unverified) if there are none.
std::vector<Lease> runningLeases(Session& session, const DomainDescription& domain);

/// Those of them that are VFs. Throws (unverified) if there are none.
std::vector<Lease> runningVfs(Session& session, const DomainDescription& domain);

}  // namespace vfpass::session
