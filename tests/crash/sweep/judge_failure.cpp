// Whether the exit status of a command that met a fault is right.
#include "sweep/bench.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {

// How a command without an open operation ended; empty: the state is neither old nor new.
std::string Bench::endOf(const World& world) const {
  const HostState now(world);
  if (now.complete == reference_.before.complete) {
    return "  rolled back at once";
  }
  if (now.complete == reference_.after.complete) {
    return "  failure reported, but done";
  }
  if (now.withoutIdleAttributes == reference_.before.withoutIdleAttributes) {
    return "  rolled back except for attributes that the next start sets";
  }
  if (now.withoutIdleAttributes == reference_.after.withoutIdleAttributes) {
    return "  done except for attributes that the next start sets";
  }
  return "";
}

void Bench::judgeSuccess(const World& world, const std::string& story) {
  const std::string now = fingerprint(world);
  const bool open = openOperationsIn(world) != 0;
  if (scenario_.name.starts_with("release") && (open || now != reference_.after.complete)) {
    // libvirt ignores its exit status, which is always 0. The database may not even have opened.
    report_.count("  release left to recover");
  } else if (open) {
    violation("success reported, but an operation is open", story);
  } else if (now == reference_.after.complete) {
    report_.count("  fault tolerated");
  } else if (now == reference_.before.complete && scenario_.isHook) {
    report_.count("  fault ignored by the hook");
  } else {
    violation("success reported, but the state is not new",
              story + difference(now, reference_.after.complete));
  }
}

void Bench::judge(World& world, const Result& result) {
  const std::string story = "    fault at: " + result.faulted.substr(0, 160) + '\n' +
                            commandText("command", result.code, result.output);
  if (result.timedOut) {
    violation("the command hangs", story);
    return;
  }
  if (result.signal != 0) {
    report_.count("  command crashed");
  } else if (result.code == 0) {
    judgeSuccess(world, story);
  } else if (openOperationsIn(world) != 0) {
    report_.count("  left to recover");
  } else if (const std::string end = endOf(world); !end.empty()) {
    report_.count(end);
    return;
  } else if (!scenario_.isHook) {
    violation("failure without an open operation: neither old nor new",
              story + "    against old:\n" +
                  difference(fingerprint(world), reference_.before.complete) +
                  "    against new:\n" + difference(fingerprint(world), reference_.after.complete));
    return;
  }
  checkRecovery(world, story, oldOrNew(reference_.recovered));
}

}  // namespace vfpass::crash
