// A command on a running VM is interrupted, and the VM stops and starts again before anybody
// recovers. Recovery must not touch what the later run of the guest has.
#include <algorithm>
#include <sstream>

#include "cases/case.hpp"
#include "scenarios/sample_host.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

using Words = std::vector<std::string>;

std::vector<Claim> claimsOf(World& world) {
  const DomainDescription& vm = world.domain("vm0");
  return vm.active ? domain::parseDomain(vm.liveXml).claims : std::vector<Claim>{};
}

// The lines of the fingerprint on the running guest and on its devices.
std::string guestOf(World& world) {
  const auto claims = claimsOf(world);
  std::istringstream state(fingerprint(world));
  std::string text;
  for (std::string line; std::getline(state, line);) {
    const bool isDevice = std::ranges::any_of(claims, [&](const Claim& claim) {
      return line.find(toString(claim.device)) != std::string::npos;
    });
    if (isDevice || line.starts_with("running vm0")) {
      text += line + '\n';
    }
  }
  return text;
}

// Otherwise the hook would not scrub them when the guest stops.
bool hasRunningLeases(World& world) {
  const auto leases = leasesIn(world);
  return std::ranges::all_of(claimsOf(world), [&](const Claim& claim) {
    const auto lease = std::ranges::find(leases, claim.device, &Lease::device);
    return lease != leases.end() && lease->state == LeaseState::running;
  });
}

// The world is one after the fault, with the operation perhaps open.
void expectLaterRunUnharmed(Case& test, World& world, const std::string& fault) {
  world.stop("vm0");
  const Result started = world.start("vm0");
  const std::string guest = guestOf(world);
  const Result recovered = world.vfpass({"recover"});
  const std::string later = guestOf(world);
  const std::string state = fingerprint(world);
  test.expect(started.code == 0 && recovered.code == 0 && openOperationsIn(world) == 0 &&
                  later == guest && hasRunningLeases(world) && guestKeepsItsVf(world, "vm0", 10) &&
                  state.find("INCONSISTENT") == std::string::npos,
              "the guest that was started after " + fault + " keeps what it has:\n" +
                  started.output + recovered.output + difference(later, guest) + state);
  world.stop("vm0");
  const Result last = world.vfpass({"recover"});
  const auto leases = leasesIn(world);
  test.expect(
      last.code == 0 && openOperationsIn(world) == 0 &&
          std::ranges::all_of(
              leases, [](const Lease& lease) { return lease.state == LeaseState::reserved; }),
      "its devices are returned once it has stopped, after " + fault + ":\n" + last.output +
          fingerprint(world));
}

// Before every second change: a commit is several of them.
void killAndRestart(Case& test, const Words& words) {
  Result killed;
  killed.fired = true;
  for (long at = 1; killed.fired; at += 2) {
    World copy = test.copy();
    killed = copy.vfpass(words, {FaultMode::kill, std::nullopt, 0, 0, at});
    expectLaterRunUnharmed(test, copy, "a kill before: " + killed.faulted);
  }
}

// libvirtd dies after each change, so that a rollback stays open.
void loseDaemonAndRestart(Case& test, const Words& words) {
  Result failed;
  failed.fired = true;
  for (long at = 1; failed.fired; ++at) {
    World copy = test.copy();
    failed = copy.vfpass(words, libvirtFault(FaultMode::lastEffect, at));
    expectLaterRunUnharmed(test, copy, "a lost reply to: " + failed.faulted);
  }
}

void runningWithoutDevices(Case& test) {
  setUpVms(test.world, 1);
  test.world.startWithoutHook("vm0");
}

void afterAttach(Case& test) {
  runningWithoutDevices(test);
  loseDaemonAndRestart(test, {"attach", "vm0"});
  killAndRestart(test, {"attach", "vm0"});
}

// The later run does not have the device, and recovery must not plug it in: the stop has taken its
// attributes.
void afterLiveAttach(Case& test) {
  runningWithoutDevices(test);
  loseDaemonAndRestart(test, {"attach", "vm0", "--live"});
  killAndRestart(test, {"attach", "vm0", "--live"});
}

// The later run has the device in any case, because the definition does.
void afterSecondAttach(Case& test) {
  runningWithoutDevices(test);
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.run({"detach", "vm0", "--live", "--force"}));
  loseDaemonAndRestart(test, {"attach", "vm0", "--live"});
  killAndRestart(test, {"attach", "vm0", "--live"});
}

void afterLiveDetach(Case& test) {
  setUpVms(test.world, 1);
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  killAndRestart(test, {"detach", "vm0", "--live", "--force"});
}

// The rollback that the lost reply left open is killed, too.
void afterKilledRollback(Case& test) {
  runningWithoutDevices(test);
  test.run({"attach", "vm0"}, libvirtFault(FaultMode::lastEffect, 3));
  test.expect(openOperationsIn(test.world) == 1, "the rollback is open");
  killAndRestart(test, {"recover"});
}

}  // namespace

std::vector<NamedCase> laterRunCases() {
  return {{"later-run-after-attach", afterAttach},
          {"later-run-after-live-attach", afterLiveAttach},
          {"later-run-after-second-attach", afterSecondAttach},
          {"later-run-after-live-detach", afterLiveDetach},
          {"later-run-after-killed-rollback", afterKilledRollback}};
}

}  // namespace vfpass::crash
