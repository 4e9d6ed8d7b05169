#include "vfpass/topology/nvlink_topology.hpp"

#include "gpu_checks.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {

std::string withoutNvlinkBoard(const View& view) {
  const auto board = topology::nvlinkBoard(view.topology());
  if (board.gpus.empty()) {
    return "no NVSwitch among the PCI functions";
  }
  return view.requirements().nvlink.empty()
             ? "a board with " + topology::describe(board) + "; no mapping uses any of them"
             : "";
}

void checkNvlink(const View& view, Results& results) {
  const std::string expected =
      "GPUs that can initialize: with the whole board, as a partition, or with NVLink disabled";
  for (const auto& [vm, judgement] : view.requirements().nvlink) {
    for (const auto& fault : judgement.faults) {
      results.failed(vm, expected, fault.message, fault.remedy);
    }
    if (judgement.faults.empty()) {
      results.passed(vm, expected, judgement.summary);
    }
  }
}

}  // namespace vfpass::doctor
