#pragma once

#include <vector>

#include "vfpass/apply/tools.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {

/// The PFs' locks for a domain that is about to start, taken while no living process has an open
/// operation with a step on that domain: such a process gives up the locks while libvirt changes
/// the XML, and that change may be waiting for this very start. It is waited for until `patience`
/// has passed; then throws Error (ExitCode::refused), so that libvirt ends the start and the other
/// process goes on. An operation whose writer has died is left to recover().
std::vector<state::FileLock> lockForStart(Tools& tools, const Uuid& domain,
                                          const std::vector<PciAddress>& pfs,
                                          std::chrono::milliseconds patience);

}  // namespace vfpass::apply
