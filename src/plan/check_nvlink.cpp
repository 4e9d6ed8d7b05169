#include "check_nvlink.hpp"

#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::plan {

void checkNvlink(const AttachInput& input, std::vector<Objection>& objections) {
  for (const auto& fault : topology::judgeNvlink(input.topology, input.mapping).faults) {
    objections.push_back(
        {toString(fault.place) + ": " + fault.message, fault.remedy, ExitCode::badInput});
  }
}

}  // namespace vfpass::plan
