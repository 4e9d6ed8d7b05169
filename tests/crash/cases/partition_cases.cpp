// Partitions of the fabric manager: after a recovery none of a stopped VM is active, and none of
// another VM was touched.
#include <algorithm>
#include <functional>

#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

constexpr unsigned ofTrain0 = 2;
constexpr unsigned ofTrain1 = 3;
constexpr unsigned ofFirstGpu = 4;  // of train0's two

// train1 runs with its partition; train0 is attached.
void setUpBesideRunningVm(Case& test) {
  setUpBoard(test.world);
  test.expectSuccess(test.run({"attach", "train0"}));
  test.expectSuccess(test.run({"attach", "train1"}));
  test.expectSuccess(test.start("train1"));
}

bool isActive(const World& world, unsigned partition) {
  const auto active = world.fabric.active();
  return std::ranges::find(active, partition) != active.end();
}

void expectRecovered(Case& test, World& world, const std::string& fault) {
  test.expect(isActive(world, ofTrain1), fault + ": the partition of the running VM is active");
  const Result recovered = world.vfpass({"recover"});
  test.expect(recovered.code == 0 && openOperationsIn(world) == 0,
              fault + ": recovered:\n" + recovered.output);
  test.expect(isActive(world, ofTrain1), fault + ": recover leaves the running VM its partition");
  test.expect(isActive(world, ofTrain0) == world.domain("train0").active,
              fault + ": a partition is active exactly while its VM runs");
  if (world.domain("train0").active) {
    world.stop("train0");
  }
  test.expect(!isActive(world, ofTrain0), fault + ": none is active after the stop");
  const Result started = world.start("train0");
  test.expect(started.code == 0 && isActive(world, ofTrain0),
              fault + ": the next start activates it:\n" + started.output);
}

// One run for each change, with a fault before it, and a last run that meets no fault.
void expectRecoveredFromEach(Case& test, Fault fault, const std::string& what,
                             const std::function<Result(World&, const Fault&)>& act) {
  bool changed = false;
  for (fault.at = 1;; ++fault.at) {
    World copy = test.copy();
    const Result result = act(copy, fault);
    if (!result.fired) {
      break;
    }
    changed |= result.faulted.starts_with("partition ");
    expectRecovered(test, copy, what + " " + std::to_string(fault.at) + ", " + result.faulted);
  }
  test.expect(changed, what + ": a change of the partition was hit");
}

void expectRecoveredFromFaults(Case& test, const std::function<Result(World&, const Fault&)>& act) {
  expectRecoveredFromEach(test, {FaultMode::kill, std::nullopt, 0, 0, -1}, "killed before", act);
  // The fabric manager completes what was requested, although the hook is dead.
  expectRecoveredFromEach(test, {FaultMode::killLate, ChangeClass::kernel, 0, 1, -1},
                          "killed within", act);
}

void killedPartitionStart(Case& test) {
  setUpBesideRunningVm(test);
  expectRecoveredFromFaults(
      test, [](World& world, const Fault& fault) { return world.start("train0", fault); });
}

void killedPartitionStop(Case& test) {
  setUpBesideRunningVm(test);
  test.expectSuccess(test.start("train0"));
  expectRecoveredFromFaults(
      test, [](World& world, const Fault& fault) { return world.stop("train0", fault); });
}

// QEMU dies with libvirt, so no hook is called; recover stops what the VM has left.
void diedWithPartition(Case& test) {
  setUpBesideRunningVm(test);
  test.expectSuccess(test.start("train0"));
  test.world.endWithoutHook("train0");
  test.expectSuccess(test.run({"recover"}));
  test.expect(!isActive(test.world, ofTrain0), "recover has deactivated the dead VM's partition");
  test.expect(isActive(test.world, ofTrain1), "and left the running VM its own");
  test.expectConsistent();
}

// Somebody has activated the whole board by hand, or a part of the VM's GPUs: it is not vfpass's,
// and nothing is changed.
void partitionInTheWay(Case& test) {
  setUpBoard(test.world);
  test.expectSuccess(test.run({"attach", "train0"}));
  for (FabricPartition& other : test.world.fabric.partitions) {
    if (other.id != 1 && other.id != ofFirstGpu) {
      continue;
    }
    other.active = true;
    test.expectRefusal(test.start("train0"), "fmpm -d " + std::to_string(other.id));
    test.expectSuccess(test.run({"recover"}));
    test.expect(test.world.fabric.active() == std::vector<unsigned>{other.id},
                "partition " + std::to_string(other.id) + " is active as before");
    other.active = false;
  }
  test.expectSuccess(test.start("train0"));
  test.expectConsistent();
}

// Somebody has activated the VM's own partition by hand: a killed start and a stop leave it active,
// until a start has activated it.
void partitionByHand(Case& test) {
  setUpBesideRunningVm(test);
  FabricPartition& own = test.world.fabric.partitions.at(ofTrain0 - 1);
  own.active = true;
  test.expectSuccess(test.start("train0"));
  test.expectSuccess(test.stop("train0"));
  test.expect(isActive(test.world, ofTrain0), "the stop leaves it active");
  for (Fault fault{FaultMode::kill, std::nullopt, 0, 0, 1};; ++fault.at) {
    World copy = test.copy();
    if (!copy.start("train0", fault).fired) {
      break;
    }
    test.expect(copy.vfpass({"recover"}).code == 0 && isActive(copy, ofTrain0),
                "killed before " + std::to_string(fault.at) + ": it is active as before");
  }
  own.active = false;
  test.expectSuccess(test.start("train0"));
  test.expectSuccess(test.stop("train0"));
  test.expect(!isActive(test.world, ofTrain0),
              "what the start has activated, the stop deactivates");
  test.expectConsistent();
}

// The stop cannot deactivate it, so the GPUs are kept from everybody until a recovery can.
void stuckPartition(Case& test) {
  setUpBesideRunningVm(test);
  test.expectSuccess(test.start("train0"));
  test.world.fabric.refuses = true;
  test.stop("train0");
  test.expectRefusal(test.run({"recover"}), "fmpm");
  test.expect(openOperationsIn(test.world) == 1, "the stop is open");
  test.expect(test.start("train0").code != 0, "the VM does not start before");
  test.world.fabric.refuses = false;
  test.expectSuccess(test.run({"recover"}));
  test.expect(test.world.fabric.active() == std::vector<unsigned>{ofTrain1},
              "only the running VM has a partition");
  test.expectSuccess(test.start("train0"));
  test.expectConsistent();
}

}  // namespace

std::vector<NamedCase> partitionCases() {
  return {{"killed-partition-start", killedPartitionStart},
          {"killed-partition-stop", killedPartitionStop},
          {"died-with-partition", diedWithPartition},
          {"partition-in-the-way", partitionInTheWay},
          {"partition-by-hand", partitionByHand},
          {"stuck-partition", stuckPartition}};
}

}  // namespace vfpass::crash
