#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sysfs/kernel_write.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// The error for a refused write of `count` to sriov_numvfs. One errno has several causes, which
/// only the kernel log distinguishes: the message quotes what was `logged` about the PF meanwhile,
/// the remedy says what to look for.
Error countRefused(const Root& root, const PciAddress& pf, std::size_t count,
                   const WriteError& refusal, const std::vector<std::string>& logged);

/// Empty if nothing `logged` about the PF during the creation says that the card's firmware has not
/// enabled a VF (ENABLE_HCA). mlx5_core creates such a VF all the same, and the write to
/// sriov_numvfs succeeds (mlx5_device_enable_sriov), but no driver can use it.
std::optional<Error> enablingRefused(const PciAddress& pf, std::size_t count,
                                     const std::vector<std::string>& logged);

/// `1 VF`, `4 VFs`.
std::string vfCountText(std::size_t count);

/// Where the kernel log names the cause, and what helps against each one.
std::string creationRemedy(const PciAddress& pf);

/// How to find what the kernel logged about the PF.
std::string searchLog(const PciAddress& pf);

}  // namespace vfpass::host
