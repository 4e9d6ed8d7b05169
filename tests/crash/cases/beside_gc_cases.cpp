// A command that dies while gc stands still at one of its requests.
#include "cases/case.hpp"
#include "cases/interleaving.hpp"
#include "scenarios/sample_host.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

using Process = Interleaving::Process;

struct BesideGc {
  bool stood;  // gc, at that request
  bool left;   // the attach changed a lease before it died
};

// An attach of vm0 dies in libvirt, if it gets there while gc stands still at its request `at`.
BesideGc leaveAttachBesideGc(World& world, long at) {
  Interleaving both(world);
  Process& gc = both.launch({"gc"});
  long requests = 0;
  both.runUntil([&] {
    requests += !gc.ended() && !Interleaving::waitsFor(gc, "file") ? 1 : 0;
    return gc.ended() || requests == at;
  });
  const bool stood = !gc.ended();
  const bool hasLease = !leasesIn(world).empty();
  both.gate = [&](const Process& process) { return &process != &gc; };
  Process& attach = both.launch({"attach", "vm0"});
  both.runUntil([&] {
    return attach.ended() || both.isBlocked(attach) || Interleaving::waitsFor(attach, "define");
  });
  const bool left = hasLease && Interleaving::waitsFor(attach, "define");
  if (!attach.ended()) {
    both.kill(attach);
  }
  both.gate = [](const Process&) { return true; };
  both.runToEnd();
  return {stood, left};
}

// Somebody has replaced the definition of vm0, so gc would end its lease. Meanwhile an attach
// records it with new terms and dies. gc must end no lease of an open operation: the attach is
// rolled back to the lease with the earlier terms and its definition. If gc was faster, there is
// none.
void gcAfterLeftAttach(Case& test) {
  setUpVms(test.world, 1);
  const std::string detached = test.state();
  const DomainXml definition = test.world.domain("vm0").persistentXml;
  test.expectSuccess(test.run({"attach", "vm0"}));
  const std::string attached = test.state();
  test.world.domain("vm0").persistentXml = definition;
  writeMapping(test.world, "vm0", "vfs:\n" + vfEntry("rail0", "    vlan: {id: 99}\n"));
  bool stood = true;
  int left = 0;
  for (long at = 1; stood; ++at) {
    World copy = test.copy();
    const BesideGc gc = leaveAttachBesideGc(copy, at);
    stood = gc.stood;
    left += gc.left ? 1 : 0;
    const Result recover = copy.vfpass({"recover"});
    const bool yields = recover.output.find("not rolled back") != std::string::npos;
    const std::string& expected = gc.left ? attached : detached;
    test.expect(recover.code == 0 && !yields && fingerprint(copy) == expected,
                "the state before, with gc at request " + std::to_string(at) + ":\n" +
                    recover.output + difference(fingerprint(copy), expected));
  }
  test.expect(left > 1, "an attach died before and after gc looked for open operations");
}

}  // namespace

std::vector<NamedCase> besideGcCases() { return {{"gc-after-left-attach", gcAfterLeftAttach}}; }

}  // namespace vfpass::crash
