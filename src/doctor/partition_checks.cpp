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

void reportPartition(const NvlinkRequirement& required,
                     const topology::PartitionJudgement& judgement, Results& results) {
  const auto& [outcome, partition, summary, remedy, modules] = judgement;
  const std::string& vm = required.vm;
  switch (outcome) {
    case Fit::fits:
      if (required.unrecorded) {  // attached without fmpm
        return results.warned(vm, expectedPartition,
                              summary +
                                  "; its lease has no module ID of a GPU, so that no start "
                                  "of the VM activates it",
                              "run `vfpass attach " + shellArgument(vm) + "`");
      }
      return results.passed(vm, expectedPartition,
                            required.judgement.summary + "; " + summary +
                                "; each start activates it, each stop deactivates it");
    case Fit::blocked:  // VMs may have the same GPUs in turn
      return results.warned(vm, expectedPartition, summary, remedy);
    case Fit::none:
      return results.failed(vm, expectedPartition, summary, remedy);
    case Fit::unknown:
      return results.notObservable(vm, expectedPartition, summary, remedy);
  }
}

std::optional<unsigned> moduleOf(const topology::PartitionedGpu& gpu) {
  return gpu.module ? gpu.module : gpu.recorded;
}

// A partition of module IDs that two VMs give to different GPUs connects GPUs of the wrong one.
void checkModulesOfOthers(const View& view, const NvlinkRequirement& required, Results& results) {
  for (const auto& gpu : required.judgement.partition) {
    for (const NvlinkRequirement& other : view.requirements().nvlink) {
      for (const auto& theirs : other.judgement.partition) {
        if (other.vm != required.vm && moduleOf(gpu) && moduleOf(gpu) == moduleOf(theirs) &&
            gpu.address != theirs.address) {
          results.failed(required.vm, "GPUs with module IDs of their own",
                         toString(gpu.address) + " has the module ID " +
                             std::to_string(*moduleOf(gpu)) + ", as " + toString(theirs.address) +
                             " of " + printable(other.vm),
                         "correct `nvlink-module` in the mappings of both VMs: `fmpm -l` shows the "
                         "number of each GPU (physicalId)");
        }
      }
    }
  }
}

}  // namespace

void checkPartition(const View& view, const NvlinkRequirement& required, Results& results) {
  const auto& [vm, judgement, unrecorded] = required;
  checkModulesOfOthers(view, required, results);
  const auto list = partitionList(view);
  if (!list) {
    results.passed(vm, expectedPartition,
                   judgement.summary +
                       "; fmpm is not installed here, so vfpass cannot check the "
                       "partition, and it must be activated before each start");
  } else {
    try {
      reportPartition(required,
                      topology::judgePartition(host::parsePartitions(*list), judgement.partition),
                      results);
    } catch (const Error& error) {
      results.warned(vm, expectedPartition, error.what(), error.remedy());
    }
  }
  checkManagerVersion(view, vm, results);
}

}  // namespace vfpass::doctor
