#pragma once

#include <optional>
#include <string>

#include "vfpass/agent/agent.hpp"

namespace vfpass::agent {

/// True for an SELinux context of the type virt_qemu_ga_t, in which the RHEL family runs the guest
/// agent and the programs that it starts. That type cannot open /dev/infiniband or GPUs, nor write
/// below /var/lib. `context` is untrusted; anything else than a context is false.
bool isConfined(const std::string& context);

/// How to let the probe leave that type, with the boolean and the file type of selinux-policy.
std::string confinementRemedy();

/// The context of the programs that the agent starts, if SELinux confines them and enforces that;
/// nullopt otherwise, and if the guest does not tell.
std::optional<std::string> findConfinement(Agent& agent);

}  // namespace vfpass::agent
