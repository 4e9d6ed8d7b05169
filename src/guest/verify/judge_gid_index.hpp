#pragma once

#include <optional>
#include <string>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// `nccl-gid-index`: whether the GID at the index that NCCL is configured to use, in the guest's
/// /etc/nccl.conf or else in the mapping, is one of RoCE v2 with the VF's IP address. A warning
/// names this index and the one that the probe found. Waived if no index is set. nullopt for an
/// older probe and a mapping without an index. Pure.
std::optional<Finding> judgeNcclGidIndex(const std::string& subject, const GuestPort& port,
                                         const GuestView& view, const WantedInGuest& wanted);

}  // namespace vfpass::verify
