#pragma once

#include <vector>

#include "vfpass/doctor/kernel_lines.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::commands {

/// Adds to each failed finding the last line of the host's kernel log about its devices: for an
/// entry, `(kernel: ...)` with a line about its VF, that VF's PF or its whole function; for a
/// finding about GPU memory also one about a GPU of the VM. `leases` are the VM's. Pure.
void explainByKernelLog(const std::vector<doctor::KernelLine>& lines,
                        const std::vector<Lease>& leases, VerifyReport& report);

}  // namespace vfpass::commands
