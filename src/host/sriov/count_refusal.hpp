#pragma once

#include <cstddef>

#include "sysfs/kernel_write.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// The error for a refused write of `count` to sriov_numvfs. One errno has several causes, which
/// only the kernel log distinguishes: the message names none of them, the remedy what to look for.
Error countRefused(const Root& root, const PciAddress& pf, std::size_t count,
                   const WriteError& refusal);

/// Where the kernel log names the cause, and what helps against each one.
std::string creationRemedy(const PciAddress& pf);

}  // namespace vfpass::host
