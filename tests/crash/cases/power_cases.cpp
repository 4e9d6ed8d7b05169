// Power failures right after the end of a command.
#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

// An attach that has ended with success is still there. libvirt's definition is as safe as the
// lease.
void powerAfterAttach(Case& test) {
  setUpVms(test.world, 1);
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.world.failPower(SimulatedDisk::Survivors::synced, 1);
  test.expectSuccess(test.run({"recover"}));
  test.expectConsistent();
  test.expect(onlyLease(test.world, "vm0").persistent, "the lease");
  const Result again = test.run({"attach", "vm0"});
  test.expect(again.output.find("nothing to do") != std::string::npos, "the definition");
}

// The same for a detach.
void powerAfterDetach(Case& test) {
  setUpVms(test.world, 1);
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.run({"detach", "vm0"}));
  test.world.failPower(SimulatedDisk::Survivors::synced, 1);
  test.expectSuccess(test.run({"recover"}));
  test.expectConsistent();
  test.expect(leasesIn(test.world).empty(), "no lease");
}

}  // namespace

std::vector<NamedCase> powerCases() {
  return {{"power-after-attach", powerAfterAttach}, {"power-after-detach", powerAfterDetach}};
}

}  // namespace vfpass::crash
