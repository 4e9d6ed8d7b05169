#pragma once

#include <string>
#include <vector>

#include "session.hpp"
#include "vfpass/hypervisor.hpp"

namespace vfpass::cli {

/// The domain, which has to run for `command` (`guest-setup`, `verify`). Throws: bad input when
/// there is none, unverified when it does not run.
DomainDescription runningGuest(Session& session, const std::string& vm, const std::string& command);

/// Leases that the running domain uses. Throws (unverified) when there is none.
std::vector<Lease> runningLeases(Session& session, const DomainDescription& domain);

/// Of these the VFs. Throws (unverified) when there is none.
std::vector<Lease> runningVfs(Session& session, const DomainDescription& domain);

}  // namespace vfpass::cli
