#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// The command that configures this VM's guest from its mapping, in backticks, for remedies.
std::string guestSetupOf(const std::string& vm);

/// How the VF's interface gets an IP address, and so a GID: by `vfpass guest-setup` if the mapping
/// has one.
std::string addressRemedy(const WantedInGuest& wanted);

/// Why an InfiniBand port cannot carry data, as the failed check `port`: link down, no subnet
/// manager, LID 0. nullopt: it can. Pure.
std::optional<Finding> judgeSubnet(const std::string& subject, const std::string& device,
                                   const GuestPort& port);

/// `p-key`: whether the port is in a partition. A warning if it is only a limited member, which
/// reaches full members only; the probe chooses the partition (docs/probe.md). nullopt for a probe
/// that does not report P_Keys. Pure.
std::optional<Finding> judgePartitions(const std::string& subject, const GuestPort& port);

/// `LID 7, subnet manager's LID 1`.
std::string lidsOf(const GuestPort& port);

/// Settings that work but are not optimal: an MTU that differs from the mapping's (`wanted`), the
/// type of GID, and NCCL's GID index. Pure.
std::vector<Finding> judgeNetworkSettings(const std::string& subject, const RdmaPort& port,
                                          const GuestView& view, const WantedInGuest& wanted);

}  // namespace vfpass::verify
