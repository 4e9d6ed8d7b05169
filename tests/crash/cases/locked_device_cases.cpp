// The kernel holds the lock of a device, as while a driver's probe hangs: its driver_override
// cannot be read.
#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"

namespace vfpass::crash {
namespace {

// An override that somebody has set would be lost if it were recorded as empty.
void expectRefusalWhileLocked(Case& test, const std::string& function, const std::string& driver) {
  test.world.files.write(test.world.files.directoryOf(function) + "/driver_override",
                         driver + "\n");
  const std::string before = test.state();
  test.world.kernel.holdLock(function);
  const Result refused = test.run({"attach", "train0"});
  test.world.kernel.releaseLock(function);
  test.expectRefusal(refused, "is locked in the kernel");
  test.expectState({before});
  test.expectSuccess(test.run({"attach", "train0"}));
  test.expect(test.world.files.driverOf(function) == "vfio-pci", "it is attached later");
  test.expectSuccess(test.run({"detach", "train0"}));
  test.expectState({before});
}

void lockedVf(Case& test) {
  setUpTraining(test.world, 4);
  writeMapping(test.world, "train0", "vfs:\n" + vfEntry("rail0", "    index: 0\n"));
  expectRefusalWhileLocked(test, vfAddressOf(firstPf, 0), "mlx5_core");
}

void lockedFunction(Case& test) {
  setUpTraining(test.world, 0);
  test.world.kernel.addFunction(gpu, "0000:00:03.0", "nvidia", "0x030200");
  writeMapping(test.world, "train0", gpuMapping);
  expectRefusalWhileLocked(test, gpu, "nvidia");
}

}  // namespace

std::vector<NamedCase> lockedDeviceCases() {
  return {{"locked-vf", lockedVf}, {"locked-function", lockedFunction}};
}

}  // namespace vfpass::crash
