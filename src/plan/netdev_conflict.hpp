#pragma once

#include <vector>

#include "vfpass/plan/soft_roce.hpp"

namespace vfpass::plan {

/// Objects to a link on a netdev that keeps another one: rdma_rxe takes one link (EEXIST).
void checkNetdev(SoftRoceDecision& decision, const std::vector<SoftRoceDecision>& all);

}  // namespace vfpass::plan
