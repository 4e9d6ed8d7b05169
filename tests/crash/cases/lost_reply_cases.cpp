// A change takes effect, but vfpass does not learn it: libvirtd or a helper dies before the reply.
#include <cerrno>

#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

void pfWithoutVfs(World& world) {
  world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  world.define("vm0", domainUuid(1));
  writeMapping(world, "vm0", "vfs:\n" + vfEntry("rail0", ""));
}

// After a fault in an attach, `recover` leads to the state before it or after it.
void attachThenRecover(Case& test, const Fault& fault) {
  const std::string before = test.state();
  const std::string after = test.stateAfter({{"attach", "vm0"}});
  const Result attach = test.run({"attach", "vm0"}, fault);
  test.expect(attach.code != 0 || test.state() == after,
              "attach reports the fault or tolerates it");
  test.expect(guestKeepsItsVf(test.world, "vm0", 10), "the guest's VF is as the guest needs it");
  test.expectSuccess(test.run({"recover"}));
  test.expectState({before, after});
}

void lostDefine(Case& test) {
  setUpVms(test.world, 1);
  attachThenRecover(test, libvirtFault(FaultMode::errorAfter, 1));
  test.expectSuccess(test.start("vm0"));
}

void lostDefineOfDetach(Case& test) {
  setUpVms(test.world, 1);
  const std::string detached = test.state();
  test.run({"attach", "vm0"});
  const std::string attached = test.state();
  const Result detach = test.run({"detach", "vm0"}, libvirtFault(FaultMode::errorAfter, 1));
  test.expect(detach.code != 0, "detach reports the fault");
  test.expectSuccess(test.run({"recover"}));
  test.expectState({attached, detached});
}

// The third change of libvirt plugs the device.
void losePlug(Case& test, FaultMode mode) {
  setUpVms(test.world, 1);
  test.world.startWithoutHook("vm0");
  attachThenRecover(test, libvirtFault(mode, 3));
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expect(guestKeepsItsVf(test.world, "vm0", 10), "the guest has its VF with its VLAN");
  test.expectSuccess(test.run({"detach", "vm0", "--force"}));
}

void lostPlug(Case& test) { losePlug(test, FaultMode::errorAfter); }

// libvirtd dies after it has plugged the device, so the rollback at once cannot even unplug it.
void plugOfDyingDaemon(Case& test) { losePlug(test, FaultMode::lastEffect); }

void removeHostdev(DomainXml& xml) {
  const std::string end = "</hostdev>";
  const auto begin = xml.text().find("<hostdev");
  if (begin != std::string::npos) {
    const auto space = xml.text().rfind('>', begin) + 1;
    xml.text().erase(space, xml.text().find(end) + end.size() - space);
  }
}

// libvirtd dies once it has the definition, so the rollback stays open, and vm0 is started before
// anybody recovers.
void expectStartBeforeRollback(Case& test, unsigned vlan) {
  const Result attach = test.run({"attach", "vm0"}, libvirtFault(FaultMode::lastEffect, 1));
  test.expect(attach.code != 0, "attach reports the fault");
  test.expect(openOperationsIn(test.world) == 1, "the rollback is open");
  test.expectSuccess(test.start("vm0"));
  test.expectSuccess(test.run({"recover"}));
  test.expect(guestKeepsItsVf(test.world, "vm0", vlan), "the guest keeps its VF with its VLAN");
  test.expectConsistent();
}

void startBeforeRollback(Case& test) {
  setUpVms(test.world, 1);
  expectStartBeforeRollback(test, 10);
}

void startBeforeRollbackOfTerms(Case& test) {
  setUpVms(test.world, 1);
  test.expectSuccess(test.run({"attach", "vm0"}));
  writeMapping(test.world, "vm0", "vfs:\n" + vfEntry("rail0", "    vlan: {id: 99}\n"));
  expectStartBeforeRollback(test, 99);
}

// libvirt accepts the definition, but does not keep the device.
void droppedElement(Case& test) {
  setUpVms(test.world, 1);
  const std::string before = test.state();
  const DomainXml definition = test.world.domain("vm0").persistentXml;
  test.world.hypervisor.afterDefine = [&test] {
    removeHostdev(test.world.domain("vm0").persistentXml);
  };
  test.expect(test.run({"attach", "vm0"}).code != 0, "attach fails");
  test.world.hypervisor.afterDefine = nullptr;
  test.expectSuccess(test.run({"recover"}));
  test.expectState({before});
  test.expect(test.world.domain("vm0").persistentXml == definition, "the same definition");
  test.expectSuccess(test.start("vm0"));
}

void lostAttributes(Case& test) {
  setUpVms(test.world, 1);
  attachThenRecover(test, kernelFault(FaultMode::errorAfter, 1, ECHILD));
}

// Each of the first changes, among them the VF count and sriov_drivers_autoprobe.
void lostCreation(Case& test) {
  for (long at = 1; at < 5; ++at) {
    test.world.hypervisor.domains.clear();
    test.world.kernel.pfs.clear();
    test.world.files.remove("var/lib/vfpass");
    pfWithoutVfs(test.world);
    attachThenRecover(test, kernelFault(FaultMode::errorAfter, at, ECHILD));
    test.world.kernel.setVfCount(firstPf, 0);
  }
}

// A power failure before each change of a command loses what is not on the disk. Then XML and
// leases agree again.
void failPowerBeforeEachChange(Case& test, const std::vector<std::string>& words) {
  Result cut;
  cut.fired = true;
  for (long at = 1; cut.fired; ++at) {
    World copy = test.copy();
    cut = copy.vfpass(words, {FaultMode::kill, std::nullopt, 0, 0, at});
    copy.failPower(SimulatedDisk::Survivors::synced, 0);
    const Result recovered = copy.vfpass({"recover"});
    const std::string state = fingerprint(copy);
    test.expect(recovered.code == 0 && openOperationsIn(copy) == 0 &&
                    state.find("INCONSISTENT") == std::string::npos,
                "a right state after a power failure before: " + cut.faulted + "\n" +
                    recovered.output + state);
  }
}

// libvirt's new definition is in place, but not its name on the disk.
void lostDefinition(Case& test) {
  setUpVms(test.world, 1);
  failPowerBeforeEachChange(test, {"attach", "vm0"});
  test.expectSuccess(test.run({"attach", "vm0"}));
  failPowerBeforeEachChange(test, {"detach", "vm0"});
}

}  // namespace

std::vector<NamedCase> lostReplyCases() {
  return {{"lost-define", lostDefine},
          {"lost-define-of-detach", lostDefineOfDetach},
          {"lost-plug", lostPlug},
          {"plug-of-dying-daemon", plugOfDyingDaemon},
          {"start-before-rollback", startBeforeRollback},
          {"start-before-rollback-of-terms", startBeforeRollbackOfTerms},
          {"dropped-element", droppedElement},
          {"lost-attributes", lostAttributes},
          {"lost-definition", lostDefinition},
          {"lost-creation", lostCreation}};
}

}  // namespace vfpass::crash
