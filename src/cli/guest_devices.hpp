#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vfpass/report/nccl_topology.hpp"
#include "vfpass/report/topology_report.hpp"

namespace vfpass::cli {

/// What a VM (name or UUID) holds, each with its place in the host's topology and the address that
/// `addressOf` gives it in the guest. Throws Error when it holds nothing, or a PF is not there.
std::vector<report::GuestDevice> guestDevicesOf(
    const std::string& vm, const report::TopologyReport& report,
    const std::function<PciAddress(const Lease&)>& addressOf);

}  // namespace vfpass::cli
