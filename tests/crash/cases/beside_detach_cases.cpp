// A recovery beside a detach of a running VM: one would give the guest its device back, or take it,
// while the other one restores the VF.
#include <set>

#include "cases/case.hpp"
#include "cases/interleaving.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

const std::vector<std::string> detachRunning{"detach", "vm0", "--force"};

struct RunningDetach {
  Result detach;
  bool recoveryStood = false;  // and had not ended before
  bool guestKeptItsVf = true;  // at each step, as long as it had one
};

// gc recovers, and stands still at its request `at` of those that write no file, while somebody
// detaches the running vm0. Then both end.
RunningDetach detachBesideRecovery(World& world, long at) {
  RunningDetach run;
  Interleaving both(world);
  const auto watch = [&](bool ends) {
    run.guestKeptItsVf = run.guestKeptItsVf && guestKeepsItsVf(world, "vm0", 10);
    return ends;
  };
  auto& gc = both.launch({"gc"});
  long requests = 0;
  both.runUntil([&] {
    requests += !gc.ended() && !Interleaving::waitsFor(gc, "file") ? 1 : 0;
    return watch(gc.ended() || requests == at);
  });
  run.recoveryStood = !gc.ended();
  both.gate = [&](const Interleaving::Process& process) { return &process != &gc; };
  auto& detach = both.launch(detachRunning);
  both.runUntil([&] { return watch(detach.ended() || both.isBlocked(detach)); });
  both.gate = [](const Interleaving::Process&) { return true; };
  both.runUntil([&] { return watch(gc.ended() && detach.ended()); });
  run.detach = detach.result();
  return run;
}

// A detach that succeeds has detached vm0, whatever the recovery does; one that is refused leaves a
// right state.
void detachBesideEachRequest(Case& test, const std::set<std::string>& detached,
                             const std::string& attached) {
  bool stood = true;
  long succeeded = 0;
  for (long at = 1; stood; ++at) {
    World copy = test.copy();
    const RunningDetach run = detachBesideRecovery(copy, at);
    stood = run.recoveryStood;
    succeeded += run.detach.code == 0 ? 1 : 0;
    const std::string where = " with gc at request " + std::to_string(at);
    test.expect(run.guestKeptItsVf, "the guest keeps its VF until it has released it," + where);
    const Result recover = copy.vfpass({"recover"});
    const std::string state = fingerprint(copy);
    const bool isRight = detached.contains(state) || (run.detach.code != 0 && state == attached);
    test.expect(
        recover.code == 0 && openOperationsIn(copy) == 0 && isRight,
        "a right state" + where + ":\n" + recover.output + difference(state, *detached.begin()));
  }
  test.expect(succeeded > 0, "a detach succeeded");
}

// An attach to the running vm0 dies before this change of libvirt.
void detachBesideKilledAttach(Case& test, long change) {
  setUpVms(test.world, 1);
  test.world.startWithoutHook("vm0");
  const std::string before = test.state();
  const std::string attached = test.stateAfter({{"attach", "vm0"}});
  const std::string after = test.stateAfter({{"attach", "vm0"}, detachRunning});
  test.run({"attach", "vm0"}, libvirtFault(FaultMode::kill, change));
  detachBesideEachRequest(test, {before, after}, attached);
}

void detachBesideKilledDefine(Case& test) { detachBesideKilledAttach(test, 1); }
void detachBesideKilledPlug(Case& test) { detachBesideKilledAttach(test, 3); }

// A detach of the running vm0 dies before this change of libvirt, and somebody repeats it.
void detachBesideKilledDetach(Case& test, long change) {
  setUpVms(test.world, 1);
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  const std::string attached = test.state();
  const std::string after = test.stateAfter({detachRunning});
  test.run(detachRunning, libvirtFault(FaultMode::kill, change));
  detachBesideEachRequest(test, {after}, attached);
}

void detachBesideKilledUnplug(Case& test) { detachBesideKilledDetach(test, 1); }
void detachBesideKilledMetadata(Case& test) { detachBesideKilledDetach(test, 2); }

}  // namespace

std::vector<NamedCase> besideDetachCases() {
  return {{"detach-beside-killed-define", detachBesideKilledDefine},
          {"detach-beside-killed-plug", detachBesideKilledPlug},
          {"detach-beside-killed-unplug", detachBesideKilledUnplug},
          {"detach-beside-killed-metadata", detachBesideKilledMetadata}};
}

}  // namespace vfpass::crash
