#pragma once

#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {

/// Takes the PF locks for a domain that is about to start, at a time when no living process has an
/// open operation with a step on that domain: such a process releases its locks while libvirt
/// changes the XML, and that change may be waiting for this very start. Waits up to `timeout` for
/// such an operation, then throws Error (ExitCode::refused), so that libvirt aborts the start and
/// the other process continues. Operations of dead writers are left to recover().
std::vector<state::FileLock> lockForStart(Tools& tools, const Uuid& domain,
                                          const std::vector<PciAddress>& pfs,
                                          std::chrono::milliseconds timeout);

}  // namespace vfpass::apply
