// Whether `vfpass recover` leads to a right state and leaves nothing to do.
#include <algorithm>

#include "sweep/bench.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

// Lock files and the database may change; the kernel and libvirt may not.
bool changedHost(const Result& result) {
  return std::any_of(result.changes.begin(), result.changes.end(), [](const std::string& change) {
    return change.find(" file ") == std::string::npos;
  });
}

}  // namespace

void Bench::checkRecovery(World& world, std::string story, const Expectation& expected) {
  const Result first = world.vfpass({"recover"});
  story += commandText("recover", first.code, first.output);
  if (first.timedOut || first.signal != 0) {
    violation("recover hangs or crashes", story);
    return;
  }
  reportUnjournaled(report_, first, place_);
  if (first.code != 0) {
    violation("recover fails", story);
  }
  if (openOperationsIn(world) != 0) {
    violation("an operation stays open", story);
    return;
  }
  checkState(world, story, expected);
  checkSecondRecovery(world, story);
}

void Bench::checkState(const World& world, const std::string& story, const Expectation& expected) {
  const std::string now = fingerprint(world, {expected.kernel, true});
  if (now == expected.before) {
    report_.count("  recovered to the old state");
  } else if (now == expected.after) {
    report_.count("  recovered to the new state");
  } else if (expected.others.contains(fingerprint(world, {expected.kernel, false}))) {
    report_.count("  recovered to another right state");
  } else {
    violation("neither old nor new", story + "    against old:\n" +
                                         difference(now, expected.before) + "    against new:\n" +
                                         difference(now, expected.after));
  }
}

void Bench::checkSecondRecovery(World& world, const std::string& story) {
  const std::string before = fingerprint(world);
  const Result second = world.vfpass({"recover"});
  const std::string after = fingerprint(world);
  const bool idle = second.output == "vfpass: nothing to do: no operation was interrupted\n";
  if (second.code != 0 || changedHost(second) || !idle || after != before) {
    violation("a second recover does something",
              story + commandText("second recover", second.code, second.output) +
                  difference(after, before));
  }
}

}  // namespace vfpass::crash
