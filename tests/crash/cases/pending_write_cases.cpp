// A write that does not return: to sysfs, where it completes later, or to a file system that hangs.
#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

// Every write of an attach that creates the VFs.
void bindAfterCreation(Case& test) {
  test.world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  test.world.define("vm0", domainUuid(1));
  writeMapping(test.world, "vm0", "vfs:\n" + vfEntry("rail0", ""));
  const std::string before = test.state();
  for (long at = 1;; ++at) {
    World copy = test.copy();
    const Result attach = copy.vfpass({"attach", "vm0"}, kernelFault(FaultMode::hang, at, 0));
    if (!attach.fired) {
      break;
    }
    copy.kernel.finishPending();
    const Result recovered = copy.vfpass({"recover"});
    test.expect(recovered.code == 0 && openOperationsIn(copy) == 0 && fingerprint(copy) == before,
                "recover after the hang of " + attach.faulted + ":\n" + recovered.output +
                    difference(fingerprint(copy), before));
  }
}

// `recover` runs while a write of host apply is pending, and again after it has completed. Only the
// first writes after the creation: a recovery that refuses has waited for five seconds.
void recoverWhilePending(Case& test) {
  setUpVms(test.world, 1);
  std::string policy = "pfs:\n  - pf: {pci: \"";  // no operator+: GCC bug 105651
  policy += firstPf;
  policy += "\"}\n    virtual-function-count: 6\n    probe-virtual-functions: true\n";
  writeHostFile(test.world, policy);
  const std::vector<std::string> apply{"host", "apply", "--allow-disruption"};
  const std::string after = test.stateAfter({apply});
  for (long at = 5; at < 8; ++at) {
    World copy = test.copy();
    const Result disturbed = copy.vfpass(apply, kernelFault(FaultMode::hang, at, 0));
    copy.vfpass({"recover"});
    copy.kernel.finishPending();
    const Result later = copy.vfpass({"recover"});
    const Result again = copy.vfpass(apply);
    test.expect(later.code == 0 && again.code == 0 && openOperationsIn(copy) == 0 &&
                    fingerprint(copy) == after,
                "host apply after the hang of " + disturbed.faulted + ":\n" + later.output +
                    again.output + difference(fingerprint(copy), after));
  }
}

// libvirt waits for the hook, at the daemon's start for each running domain. The call of the hook
// with the shortest deadline, because it is one of real time.
void frozenDisk(Case& test) {
  setUpVms(test.world, 1);
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  const Fault freeze{FaultMode::freeze, ChangeClass::file, 0, 0, 1};
  const Result reconnect = test.world.run(
      {{"hook", "vm0", "reconnect", "begin", "-"}, test.world.domain("vm0").liveXml}, freeze);
  test.expect(reconnect.fired && !reconnect.timedOut && reconnect.code == 0 &&
                  reconnect.output.find("deadline exceeded") != std::string::npos,
              "the hook ends at its deadline, and lets the guest run:\n" + reconnect.output);
  test.expectSuccess(test.run({"recover"}));
  test.expectSuccess(test.stop("vm0"));
  test.expectConsistent();
}

}  // namespace

std::vector<NamedCase> pendingWriteCases() {
  return {{"bind-after-creation", bindAfterCreation},
          {"recover-while-pending", recoverWhilePending},
          {"frozen-disk", frozenDisk}};
}

}  // namespace vfpass::crash
