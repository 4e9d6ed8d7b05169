// Operations that recovery cannot simply complete: what leads out, and whether other VMs work.
#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

void undefine(World& world, const std::string& vm) {
  std::erase_if(world.hypervisor.domains, [&](const auto& each) { return each.name == vm; });
  world.files.remove("etc/vfpass/vms/" + vm + ".yaml");
}

void undefinedDuringAttach(Case& test) {
  setUpVms(test.world, 2);
  test.run({"attach", "vm1"});
  World withoutVm0 = test.copy();
  undefine(withoutVm0, "vm0");
  const std::string expected = fingerprint(withoutVm0);
  test.run({"attach", "vm0"});
  writeMapping(test.world, "vm0", "vfs:\n" + vfEntry("rail0", "    vlan: {id: 99}\n"));
  test.run({"attach", "vm0"}, killBeforeDefine());
  undefine(test.world, "vm0");
  test.expectSuccess(test.run({"recover"}));
  test.expectSuccess(test.run({"gc"}));
  test.expectState({expected});
}

// The VF of vm0 cannot be reset, so it must not be given to anybody. vm1 also ended without a
// release; its VF can be reset.
void failingReset(Case& test) {
  setUpVms(test.world, 3);
  for (const char* vm : {"vm0", "vm1"}) {
    test.run({"attach", vm});
    test.start(vm);
  }
  test.world.kernel.brokenResets.insert(toString(onlyLease(test.world, "vm0").device));
  test.stop("vm0");
  test.world.endWithoutHook("vm1");
  const Result recover = test.run({"recover"});
  test.expectRefusal(recover, "(operation ");
  test.expect(openOperationsIn(test.world) == 1, "only the operation of vm0 is open");
  test.expect(test.start("vm0").code != 0, "vm0 does not start on a VF that was not reset");
  test.expectSuccess(test.start("vm1"));
  test.expectSuccess(test.run({"attach", "vm2"}));
}

// The number of the operation in the message of a refusal.
std::string operationIn(const std::string& output) {
  const std::string mark = "(operation ";
  const auto at = output.find(mark);
  if (at == std::string::npos) {
    return "none";
  }
  const auto begin = at + mark.size();
  return output.substr(begin, output.find_first_not_of("0123456789", begin) - begin);
}

void abandon(Case& test) {
  setUpVms(test.world, 1);
  test.run({"attach", "vm0"});
  test.start("vm0");
  test.world.kernel.brokenResets.insert(toString(onlyLease(test.world, "vm0").device));
  test.stop("vm0");
  const Result refused = test.run({"recover"});
  test.expectRefusal(refused, "(operation ");
  test.expectSuccess(test.run({"recover", "--abandon", operationIn(refused.output)}));
  test.expect(openOperationsIn(test.world) == 0, "no open operation");
  test.expect(test.start("vm0").code != 0, "vm0 does not start on a VF whose reset failed");
  test.world.kernel.brokenResets.clear();  // what the remedy asks for: the cause is found
  test.expectSuccess(
      test.run({"quarantine", "release", toString(onlyLease(test.world, "vm0").device)}));
  test.expectSuccess(test.start("vm0"));
}

DomainDescription domainWithFirstVf() {
  DomainDescription domain;
  domain.uuid = domainUuid(9);
  domain.name = "other";
  domain.active = true;
  domain.liveXml = "<domain><name>other</name><uuid>" + toString(domain.uuid) +
                   "</uuid><devices><hostdev mode='subsystem' type='pci'><source><address "
                   "domain='0x0000' bus='0x01' slot='0x00' function='0x1'/></source></hostdev>"
                   "</devices></domain>";
  return domain;
}

// Another domain has opened the VF of an interrupted attach. That blocks only this operation.
void deviceInUse(Case& test) {
  setUpVms(test.world, 3);
  test.run({"attach", "vm0"}, killBeforeDefine());
  test.world.hypervisor.domains.push_back(domainWithFirstVf());
  test.expectSuccess(test.run({"attach", "vm1"}));
  test.expectSuccess(test.start("vm1"));
  test.world.endWithoutHook("vm1");
  test.expectRefusal(test.run({"recover"}), "stop it");
  test.expectSuccess(test.start("vm1"));
  test.expectSuccess(test.run({"attach", "vm2"}));
  test.world.hypervisor.domains.pop_back();
  test.expectSuccess(test.run({"recover"}));
  test.expectConsistent();
}

// gc names the operation that cannot end, and does its work for the other VMs all the same: vm1,
// which nobody defines any more, loses its lease.
void expectGcBesideStuckOperation(Case& test, const std::string& refusal) {
  test.expectRefusal(test.run({"gc"}), refusal);
  test.expect(openOperationsIn(test.world) == 1, "the operation of vm0 is open");
  for (const auto& lease : leasesIn(test.world)) {
    test.expect(lease.domainName != "vm1", "gc has released the lease of vm1");
  }
  test.expectSuccess(test.start("vm2"));
}

void gcBesideFailingReset(Case& test) {
  setUpVms(test.world, 3);
  for (const char* vm : {"vm0", "vm1", "vm2"}) {
    test.expectSuccess(test.run({"attach", vm}));
  }
  test.expectSuccess(test.start("vm0"));
  test.expectSuccess(test.start("vm2"));
  test.world.kernel.brokenResets.insert(toString(onlyLease(test.world, "vm0").device));
  test.stop("vm0");
  test.stop("vm2");
  undefine(test.world, "vm1");
  expectGcBesideStuckOperation(test, "(operation ");
}

void gcBesideDeviceInUse(Case& test) {
  setUpVms(test.world, 3);
  test.run({"attach", "vm0"}, killBeforeDefine());
  test.world.hypervisor.domains.push_back(domainWithFirstVf());
  for (const char* vm : {"vm1", "vm2"}) {
    test.expectSuccess(test.run({"attach", vm}));
  }
  undefine(test.world, "vm1");
  expectGcBesideStuckOperation(test, "stop it");
  test.world.hypervisor.domains.pop_back();
  test.expectSuccess(test.run({"gc"}));
  test.expectConsistent();
}

// `recover` is killed after it has dropped the first of two leases.
void killedBetweenLeases(Case& test) {
  setUpVms(test.world, 1);
  writeMapping(test.world, "vm0", "vfs:\n" + vfEntry("rail0", "") + vfEntry("rail1", ""));
  const std::string before = test.state();
  test.run({"attach", "vm0"}, killBeforeDefine());
  const std::string interrupted = test.state();
  for (long at = 1;; ++at) {
    World copy = test.copy();
    const Result killed = copy.vfpass({"recover"}, {FaultMode::kill, std::nullopt, 0, 0, at});
    if (!killed.fired) {
      break;
    }
    const Result recovered = copy.vfpass({"recover"});
    test.expect(recovered.code == 0 && openOperationsIn(copy) == 0 && fingerprint(copy) == before,
                "recover after a kill of recover at change " + std::to_string(at) +
                    " rolls back:\n" + recovered.output + difference(fingerprint(copy), before));
  }
  test.expect(interrupted != before, "the attach was interrupted after its first change");
}

// An attach to the running vm0 died before the guest got a device, or after recover had taken it
// back and died, too. The VM stops, and its VF is the host's, with the attributes that it had.
void stopAfterKilledLiveAttach(Case& test) {
  setUpVms(test.world, 1);
  const std::string stopped = test.state();
  test.world.startWithoutHook("vm0");
  test.run({"attach", "vm0"}, killBeforeDefine());
  bool fired = true;
  for (long at = 1; fired; ++at) {
    World copy = test.copy();
    const Result recover = copy.vfpass({"recover"}, {FaultMode::kill, std::nullopt, 0, 0, at});
    fired = recover.fired;
    copy.stop("vm0");
    test.expectSuccess(copy.vfpass({"recover"}));
    test.expect(fingerprint(copy) == stopped, "recover killed at " + std::to_string(at) + ":\n" +
                                                  difference(fingerprint(copy), stopped));
  }
}

// The same, but the attach had changed the persistent XML: vm0 starts with the device before
// anybody recovers, and its data must not stay when it stops.
void restartAfterKilledLiveAttach(Case& test) {
  setUpVms(test.world, 1);
  test.world.startWithoutHook("vm0");
  test.run({"attach", "vm0"}, {FaultMode::kill, ChangeClass::libvirt, 0, 0, 2});
  test.stop("vm0");
  test.expectSuccess(test.start("vm0"));
  test.stop("vm0");
  test.expect(onlyLease(test.world, "vm0").state == LeaseState::reserved,
              "the hook has scrubbed the VF");
  test.expectSuccess(test.run({"recover"}));
  test.expectConsistent();
}

}  // namespace

std::vector<NamedCase> stuckOperationCases() {
  return {{"undefined-during-attach", undefinedDuringAttach},
          {"failing-reset", failingReset},
          {"abandon", abandon},
          {"device-in-use", deviceInUse},
          {"gc-beside-failing-reset", gcBesideFailingReset},
          {"gc-beside-device-in-use", gcBesideDeviceInUse},
          {"killed-between-leases", killedBetweenLeases},
          {"stop-after-killed-live-attach", stopAfterKilledLiveAttach},
          {"restart-after-killed-live-attach", restartAfterKilledLiveAttach}};
}

}  // namespace vfpass::crash
