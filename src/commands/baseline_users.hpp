#pragma once

#include <functional>
#include <vector>

#include "vfpass/baseline.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::commands {

/// This PF and the other functions of its card (ports), without their VFs: all of them share one
/// PCI Express link. Pure.
std::vector<PciAddress> functionsOfCard(const Topology& host, const PciAddress& pf);

/// Adds who uses the card now to Baseline::users, each once and at most 16, and to
/// Baseline::unseenUsers why there may be others. That `find` throws Error is such a reason.
void addUsers(const std::function<std::vector<Holder>()>& find, Baseline& baseline);

}  // namespace vfpass::commands
