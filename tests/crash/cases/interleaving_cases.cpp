// Two or three processes at once, one of which stands still at a certain request.
#include <utility>

#include "cases/case.hpp"
#include "cases/interleaving.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

using Process = Interleaving::Process;

// Starts `slow`, stops it at its first request of this kind, runs `other` until it ends or waits
// for a lock, and then lets both end.
std::pair<Result, Result> interleave(World& world, const std::vector<std::string>& slow,
                                     const std::string& stopAt,
                                     const std::vector<std::string>& other) {
  Interleaving both(world);
  Process& first = both.launch(slow);
  bool hold = true;
  both.gate = [&](const Process& process) {
    return !hold || &process != &first || !Interleaving::waitsFor(process, stopAt);
  };
  both.runUntil([&] { return first.ended() || Interleaving::waitsFor(first, stopAt); });
  Process& second = both.launch(other);
  both.runUntil([&] { return second.ended() || both.isBlocked(second); });
  hold = false;
  both.runToEnd();
  return {first.result(), second.result()};
}

// The end of an attach that something else preceded: vm0 is attached, and another VM gets another
// VF.
void expectAttached(Case& test, const Result& attach, const std::string& attached) {
  test.expectSuccess(attach);
  test.expectState({attached});
  test.expectSuccess(test.run({"attach", "vm1"}));
  test.expect(onlyLease(test.world, "vm0").device != onlyLease(test.world, "vm1").device,
              "the VMs have different VFs");
  test.expectConsistent();
}

// gc recovers a dead attach of vm0 and waits for libvirt without its locks, while somebody repeats
// the attach.
void recoveryAndAttach(Case& test) {
  setUpVms(test.world, 2);
  const std::string attached = test.stateAfter({{"attach", "vm0"}});
  test.run({"attach", "vm0"}, killBeforeDefine());
  const auto [gc, attach] = interleave(test.world, {"gc"}, "definition", {"attach", "vm0"});
  test.expectSuccess(gc);
  expectAttached(test, attach, attached);
  test.expectSuccess(test.start("vm0"));
}

void recoveryAndLiveAttach(Case& test) {
  setUpVms(test.world, 2);
  test.world.startWithoutHook("vm0");
  const std::string attached = test.stateAfter({{"attach", "vm0"}});
  test.run({"attach", "vm0"}, killBeforeDefine());
  const auto [gc, attach] = interleave(test.world, {"gc"}, "definition", {"attach", "vm0"});
  test.expectSuccess(gc);
  expectAttached(test, attach, attached);
}

void recoveryAndDetach(Case& test) {
  setUpVms(test.world, 2);
  const std::string detached = test.state();
  test.run({"attach", "vm0"});
  test.run({"detach", "vm0"}, killBeforeDefine());
  const auto [gc, detach] = interleave(test.world, {"gc"}, "definition", {"detach", "vm0"});
  test.expectSuccess(gc);
  test.expectSuccess(test.run({"recover"}));
  test.expectState({detached});
  test.expect(detach.code == 0, "detach succeeds");
}

// A living detach stands still in libvirt: an attach of the same VM waits for it.
void detachAndAttach(Case& test) {
  setUpVms(test.world, 2);
  test.run({"attach", "vm0"});
  const std::string attached = test.state();
  const auto [detach, attach] =
      interleave(test.world, {"detach", "vm0"}, "define", {"attach", "vm0"});
  test.expectSuccess(detach);
  expectAttached(test, attach, attached);
}

// Two VMs, and a PF that has no VFs yet.
void setUpWithoutVfs(World& world) {
  world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  for (unsigned vm = 0; vm < 2; ++vm) {
    const std::string name = "vm" + std::to_string(vm);
    world.define(name, domainUuid(vm + 1));
    writeMapping(world, name, "vfs:\n" + vfEntry("rail0", ""));
  }
}

// vm0's attach creates the VFs and dies, vm1's uses them and dies as well.
void lastRollback(Case& test) {
  setUpWithoutVfs(test.world);
  const std::string before = test.state();
  {
    Interleaving both(test.world);
    both.gate = [](const Process& process) {
      return !Interleaving::waitsFor(process, "definition");
    };
    for (const char* vm : {"vm0", "vm1"}) {
      Process& attach = both.launch({"attach", vm});
      both.runUntil([&] { return Interleaving::waitsFor(attach, "definition"); });
    }
  }  // kills both
  test.expectSuccess(test.run({"recover"}));
  test.expectState({before});
}

// Both are detached at the same time, and vfpass has created the VFs: neither leaves them to the
// other.
void lastDetaches(Case& test) {
  World& world = test.world;
  setUpWithoutVfs(world);
  const std::string before = test.state();
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.run({"attach", "vm1"}));
  const auto [first, second] = interleave(world, {"detach", "vm0"}, "define", {"detach", "vm1"});
  test.expectSuccess(first);
  test.expectSuccess(second);
  test.expectState({before});
}

// The hook died while it released the devices of vm0. A recovery stands still at each lock in turn
// while a detach of the same VM runs: neither may wait for a lock of the other that waits for its
// own.
void recoveryOfReleaseAndDetach(Case& test) {
  setUpVms(test.world, 1);
  const std::string before = test.state();
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  test.world.stop("vm0", {FaultMode::kill, ChangeClass::kernel, 0, 0, 1});
  bool ended = false;
  for (long at = 1; !ended; ++at) {
    World copy = test.copy();
    Interleaving both(copy);
    Process& recover = both.launch({"recover"});
    long locks = 0;
    both.runUntil([&] {
      ended = recover.ended();
      locks += !ended && Interleaving::waitsFor(recover, "attempt") ? 1 : 0;
      return ended || locks == at;
    });
    both.gate = [&](const Process& process) { return &process != &recover; };
    Process& detach = both.launch({"detach", "vm0", "--force"});
    both.runUntil([&] { return detach.ended() || both.isBlocked(detach); });
    both.gate = [](const Process&) { return true; };
    both.runToEnd();
    test.expectSuccess(recover.result());
    test.expectSuccess(detach.result());
    test.expect(fingerprint(copy) == before, "with recover at lock " + std::to_string(at) + ":\n" +
                                                 difference(fingerprint(copy), before));
  }
}

// A VM stopped without a release, and while recover asks libvirt whether it still has, a detach
// ends its last lease.
void scrubAndDetach(Case& test) {
  World& world = test.world;
  setUpVms(world, 2);
  test.expectSuccess(test.run({"attach", "vm1"}));
  const std::string before = test.state();
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  world.endWithoutHook("vm0");
  const auto [recover, detach] = interleave(world, {"recover"}, "find", {"detach", "vm0"});
  test.expectSuccess(recover);
  test.expectSuccess(detach);
  test.expectState({before});
}

// A detach waits for libvirt while recover scrubs the devices of the same VM, which has stopped
// without a release, and dies at some request. The detach ends the leases, and what is left of the
// scrubbing must neither bring them back nor touch the devices, which are the host's.
void killedScrubAndDetach(Case& test) {
  World& world = test.world;
  setUpVms(world, 2);
  const std::string before = test.state();
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  bool ended = false;
  for (long at = 1; !ended; ++at) {
    World copy = test.copy();
    Interleaving both(copy);
    Process& detach = both.launch({"detach", "vm0", "--force"});
    const auto waits = [&] { return Interleaving::waitsFor(detach, "definition"); };
    bool hold = true;
    both.gate = [&](const Process& process) { return !hold || &process != &detach || !waits(); };
    both.runUntil(waits);
    copy.endWithoutHook("vm0");
    Process& recover = both.launch({"recover"});
    long requests = 0;
    both.runUntil([&] {
      ended = recover.ended();
      return ended || ++requests == at;
    });
    if (!recover.ended()) {
      both.kill(recover);
    }
    hold = false;
    both.runToEnd();
    test.expectSuccess(detach.result());
    test.expectSuccess(copy.vfpass({"recover"}));
    test.expect(fingerprint(copy) == before, "after a kill of recover at " + std::to_string(at) +
                                                 ":\n" + difference(fingerprint(copy), before));
  }
}

struct Stands {
  long detach;   // at this request other than a write of a file
  long prepare;  // at this request, where it dies
};

// False if one of them has ended before.
bool killStartBesideDetach(Case& test, const std::string& before, const Stands& stands,
                           int& detached) {
  const std::string xml = test.world.domain("vm0").persistentXml;
  World copy = test.copy();
  Interleaving both(copy);
  Process& detach = both.launch({"detach", "vm0", "--force"});
  long attempts = 0;
  both.runUntil([&] {
    attempts += !detach.ended() && !Interleaving::waitsFor(detach, "file") ? 1 : 0;
    return detach.ended() || attempts == stands.detach;
  });
  if (detach.ended()) {
    return false;
  }
  both.gate = [&](const Process& process) { return &process != &detach; };
  Process& prepare = both.launch({{"hook", "vm0", "prepare", "begin", "-"}, xml}, "prepare");
  long requests = 0;
  both.runUntil(
      [&] { return prepare.ended() || both.isBlocked(prepare) || ++requests == stands.prepare; });
  if (prepare.ended() || both.isBlocked(prepare)) {
    return false;
  }
  both.kill(prepare);
  Process& release = both.launch({{"hook", "vm0", "release", "end", "-"}, xml}, "release");
  both.runUntil([&] { return release.ended() || both.isBlocked(release); });
  both.gate = [](const Process&) { return true; };
  both.runToEnd();
  if (detach.result().code == 0) {
    ++detached;
    test.expectSuccess(copy.vfpass({"recover"}));
    test.expect(fingerprint(copy) == before,
                "with detach at lock " + std::to_string(stands.detach) +
                    " and a kill of the start at " + std::to_string(stands.prepare) + ":\n" +
                    difference(fingerprint(copy), before));
  }
  return true;
}

// A detach of vm0 stands still at each lock in turn. The hook prepares the devices of vm0
// meanwhile, and dies at each request in turn. The start fails, and libvirt calls release. The
// detach then ends the leases, and recovery of the start must not bring them back.
void killedStartAndDetach(Case& test) {
  setUpVms(test.world, 1);
  const std::string before = test.state();
  test.expectSuccess(test.run({"attach", "vm0"}));
  test.expectSuccess(test.start("vm0"));
  test.expectSuccess(test.world.stop("vm0"));  // so that a start has attributes to set
  int detached = 0;
  for (long lock = 1, request = 1; request > 1 || lock == 1; ++lock) {
    for (request = 1; killStartBesideDetach(test, before, {lock, request}, detached);) {
      ++request;
    }
  }
  test.expect(detached > 0, "a detach succeeded after a kill of the start");
}

// A live attach of vm0 died, and vm0 has stopped without a release. While gc takes the attach back,
// recover finds the VM whose devices nobody has scrubbed; then gc dies at some request.
void scrubBesideRollback(Case& test) {
  setUpVms(test.world, 2);
  test.expectSuccess(test.run({"attach", "vm1"}));
  const std::string stopped = test.state();
  test.world.startWithoutHook("vm0");
  test.run({"attach", "vm0"}, killBeforeDefine());
  test.world.endWithoutHook("vm0");
  bool ended = false;
  for (long at = 1; !ended; ++at) {
    World copy = test.copy();
    {
      Interleaving both(copy);
      Process& gc = both.launch({"gc"});
      long requests = 0;
      both.runUntil([&] {
        ended = gc.ended();
        return ended || ++requests == at;
      });
      both.gate = [&](const Process& process) { return &process != &gc; };
      Process& recover = both.launch({"recover"});
      both.runUntil([&] { return recover.ended() || both.isBlocked(recover); });
      both.kill(gc);
      both.gate = [](const Process&) { return true; };
      both.runToEnd();
    }
    test.expectSuccess(copy.vfpass({"recover"}));
    test.expect(fingerprint(copy) == stopped, "with gc at request " + std::to_string(at) + ":\n" +
                                                  difference(fingerprint(copy), stopped));
  }
}

// Makes `gc` die at the last change at which the lease is gone and the operation still open.
void killAfterLease(Case& test) {
  long last = 0;
  for (long at = 1;; ++at) {
    World copy = test.copy();
    if (!copy.vfpass({"gc"}, {FaultMode::kill, std::nullopt, 0, 0, at}).fired) {
      break;
    }
    if (leasesIn(copy).empty() && openOperationsIn(copy) == 1) {
      last = at;
    }
  }
  test.expect(last > 0, "gc can die between the end of the lease and that of its operation");
  test.run({"gc"}, {FaultMode::kill, std::nullopt, 0, 0, last});
}

// A dead gc has dropped the lease of a PCI function. While one process recovers it, another one
// attaches the function to another VM.
void recoveryOfFunction(Case& test) {
  World& world = test.world;
  world.kernel.addPf(firstPf, "0000:00:01.0", "eth0", 7);
  world.kernel.addFunction(gpu, "0000:00:03.0", "nvidia", "0x030200");
  world.define("vm0", domainUuid(1));
  world.define("vm1", domainUuid(2));
  writeMapping(world, "vm0", gpuMapping);
  test.expectSuccess(test.run({"attach", "vm0"}));
  std::erase_if(world.hypervisor.domains, [](const auto& each) { return each.name == "vm0"; });
  world.files.remove("etc/vfpass/vms/vm0.yaml");
  writeMapping(world, "vm1", gpuMapping);
  killAfterLease(test);
  const auto [recover, attach] = interleave(world, {"recover"}, "holders", {"attach", "vm1"});
  test.expectSuccess(recover);
  test.expectSuccess(attach);
  test.expectConsistent();
  test.expect(world.files.driverOf(gpu) == "vfio-pci", "the GPU is bound to vfio-pci");
}

// vm0's attach dies right after the commit with which its operation begins. vm1's attach, which
// looked for interrupted operations before, waits for the PF's lock meanwhile.
void attachDuringDeath(Case& test) {
  setUpVms(test.world, 2);
  Interleaving both(test.world);
  bool hold = true;
  enum { before, locked, committed, dead } stage = before;
  both.gate = [&](const Process& process) {
    const Message& request = process.request();
    if (process.name() != "attach vm0") {
      return true;
    }
    if (request.at(0) == "holders") {
      return !hold;
    }
    if (request.at(0) != "file") {
      return true;
    }
    if (stage == before && request.at(2).find("operation-") != std::string::npos) {
      stage = locked;
    }
    if (stage == committed) {
      stage = dead;
      return false;
    }
    if (stage == locked && request.at(1) == "fdatasync") {
      stage = committed;
    }
    return stage != dead;
  };
  Process& first = both.launch({"attach", "vm0"});
  both.runUntil([&] { return first.ended() || Interleaving::waitsFor(first, "holders"); });
  Process& second = both.launch({"attach", "vm1"});
  both.runUntil([&] { return second.ended() || both.isBlocked(second); });
  hold = false;
  both.runUntil([&] { return first.ended() || stage == dead; });
  both.kill(first);
  both.runUntil([&] { return second.ended(); });
  test.expectSuccess(second.result());
}

void expectDeviceOfVm1(Case& test) {
  test.expectSuccess(test.run({"recover"}));
  test.expectConsistent();
  const Lease lease = onlyLease(test.world, "vm1");
  test.expect(test.world.files.driverOf(toString(lease.device)) == "vfio-pci",
              "the VF of vm1 is bound to vfio-pci");
}

void recoveryAndOtherLease(Case& test) {
  attachDuringDeath(test);
  expectDeviceOfVm1(test);
}

// libvirt runs the domain, but QEMU has not opened the devices yet: the host derives the holders
// from the devices of the running domain.
void startWithoutOpenDevices(DomainDescription& domain) {
  std::string xml = domain.persistentXml;
  const std::string end = "</hostdev>";
  const auto begin = xml.find("<hostdev");
  xml.erase(begin, xml.find(end) + end.size() - begin);
  domain.liveXml = xml;
  domain.active = true;
}

// The same, and vm1 is starting, but QEMU has not opened the VF yet.
void recoveryDuringStart(Case& test) {
  attachDuringDeath(test);
  const std::string definition = test.world.domain("vm1").persistentXml;
  test.expectSuccess(test.world.run({{"hook", "vm1", "prepare", "begin", "-"}, definition}));
  startWithoutOpenDevices(test.world.domain("vm1"));
  expectDeviceOfVm1(test);
  const Lease lease = onlyLease(test.world, "vm1");
  test.expect(test.world.kernel.settings(firstPf, vfOf(lease).index).vlan->id == 11,
              "the VF of vm1 has its VLAN");
}

}  // namespace

std::vector<NamedCase> interleavingCases() {
  return {{"recovery-and-attach", recoveryAndAttach},
          {"recovery-and-live-attach", recoveryAndLiveAttach},
          {"recovery-and-detach", recoveryAndDetach},
          {"detach-and-attach", detachAndAttach},
          {"last-detaches", lastDetaches},
          {"recovery-of-release-and-detach", recoveryOfReleaseAndDetach},
          {"scrub-and-detach", scrubAndDetach},
          {"killed-scrub-and-detach", killedScrubAndDetach},
          {"killed-start-and-detach", killedStartAndDetach},
          {"scrub-beside-rollback", scrubBesideRollback},
          {"last-rollback", lastRollback},
          {"recovery-of-function", recoveryOfFunction},
          {"recovery-and-other-lease", recoveryAndOtherLease},
          {"recovery-during-start", recoveryDuringStart}};
}

}  // namespace vfpass::crash
