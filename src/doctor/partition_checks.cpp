#include "check.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/fabric_manager.hpp"
#include "vfpass/host/program_output.hpp"

namespace vfpass::doctor {
namespace {

using Fit = topology::PartitionJudgement::Outcome;

const char* const expectedPartition =
    "a partition of the fabric manager that holds exactly the VM's GPUs";

// The output of `fmpm -l`; empty if it does not answer, nullopt if it is not installed.
std::optional<std::string> partitionList(const View& view) {
  return view.answer("fabric-partitions", [&]() -> std::optional<std::string> {
    const std::string fmpm = host::findFmpm(view.root());
    return fmpm.empty()
               ? std::nullopt
               : std::optional(
                     host::programOutput({fmpm, "-l"}, deadlines::fabricAnswer).value_or(""));
  });
}

// Of the fabric manager on this host; empty if there is none.
std::string managerVersion(const View& view) {
  return view
      .answer("fabric-manager-version",
              [] { return host::readFabricManagerVersion(deadlines::fabricAnswer); })
      .value_or("");
}

// A guest's driver of another version than the fabric manager's does not get its NVLinks (Fabric
// Manager User Guide). On the same host the fabric manager refuses to start.
void checkManagerVersion(const View& view, const std::string& vm, Results& results) {
  const std::string manager = printable(managerVersion(view));
  const std::string driver =
      printable(view.root().readText("sys/module/nvidia/version").value_or(""));
  if (manager.empty()) {
    return;
  }
  const std::string expected =
      "fabric manager and driver of one version, on the host and in the guest";
  const std::string seen = "fabric manager " + manager;
  if (!driver.empty() && driver != manager) {
    results.warned(vm, expected, seen + ", the host's driver " + driver,
                   "install the package of nvidia-fabricmanager in version " + driver +
                       ", then restart nvidia-fabricmanager while no VM with a partition runs");
  } else {
    results.passed(
        vm, expected,
        seen + (driver.empty() ? "" : ", as the host's driver") +
            "; the guest's driver has to be of this version, too (verify compares them)");
  }
}

void reportPartition(const std::string& vm, const std::string& nvlink,
                     const topology::PartitionJudgement& judgement, Results& results) {
  const auto& [outcome, partition, summary, remedy, modules] = judgement;
  switch (outcome) {
    case Fit::fits:
      return results.passed(
          vm, expectedPartition,
          nvlink + "; " + summary + "; each start activates it, each stop deactivates it");
    case Fit::blocked:  // VMs may have the same GPUs in turn
      return results.warned(vm, expectedPartition, summary, remedy);
    case Fit::none:
      return results.failed(vm, expectedPartition, summary, remedy);
    case Fit::unknown:
      return results.notObservable(vm, expectedPartition, summary, remedy);
  }
}

}  // namespace

void checkPartition(const View& view, const std::string& vm,
                    const topology::NvlinkJudgement& judgement, Results& results) {
  const auto list = partitionList(view);
  if (!list) {
    return results.passed(vm, expectedPartition,
                          judgement.summary +
                              "; fmpm is not installed here, so vfpass cannot check the "
                              "partition, and it must be activated before each start");
  }
  try {
    reportPartition(vm, judgement.summary,
                    topology::judgePartition(host::parsePartitions(*list), judgement.partition),
                    results);
  } catch (const Error& error) {
    results.warned(vm, expectedPartition, error.what(), error.remedy());
  }
  checkManagerVersion(view, vm, results);
}

}  // namespace vfpass::doctor
