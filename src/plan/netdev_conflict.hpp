#pragma once

#include <vector>

#include "vfpass/plan/plan_soft_roce.hpp"

namespace vfpass::plan {

/// Adds a problem for a link on a netdev that keeps another one: rdma_rxe allows one link per
/// netdev (EEXIST).
void checkNetdev(SoftRoceDecision& decision, const std::vector<SoftRoceDecision>& all);

}  // namespace vfpass::plan
