#pragma once

#include <string>
#include <vector>

#include "pair_data_path.hpp"

namespace vfpass::verify {

/// A pair of VFs between which data has been moved alone.
struct WorkingPair {
  std::string subject;
  PairEnd initiator;
  PairEnd target;
};

/// Moves data through all pairs at the same time, with memory of this kind at both ends (`host`,
/// `gpu`), and adds findings and rates to the report. Each pair has a thread of its own, which only
/// asks the agents; counters are read and results judged in this one. If a checkpoint of the agents
/// throws, every thread cleans up, and the exception leaves this function.
void moveTogether(const std::vector<WorkingPair>& pairs, const std::string& memory,
                  const VerifyPlan& plan, VerifyReport& report);

}  // namespace vfpass::verify
