// What may follow the death of a command, apart from an immediate recovery.
#include <sstream>

#include "sweep/bench.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {
namespace {

void replaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// A reboot ends every domain and every SoftRoCE link, and the leases of another boot read as
// reserved.
std::string afterRebootOf(std::string state) {
  replaceAll(state, " running persistent", " reserved persistent");
  replaceAll(state, " starting persistent", " reserved persistent");
  replaceAll(state, " running live", " reserved live");
  std::istringstream lines(state);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("running ")) {
      line = line.substr(0, line.find(' ', std::string("running ").size())) + " none";
    }
    if (!line.starts_with("SoftRoCE record ")) {
      text += line + '\n';
    }
  }
  return text;
}

}  // namespace

// The hook may refuse while an operation is interrupted; then it succeeds after `recover`.
void Bench::checkSameCommand(World& world, std::string story) {
  const Result again = scenario_.act(world, {});
  story += commandText("the same command", again.code, again.output);
  if (again.code != 0 && scenario_.isHook) {
    report_.count("  start refused until recover");
    const Result recovered = world.vfpass({"recover"});
    const Result third = scenario_.act(world, {});
    story += commandText("recover", recovered.code, recovered.output) +
             commandText("the same command", third.code, third.output);
    if (recovered.code != 0 || third.code != 0) {
      violation("the same command fails after recover", story);
    }
  } else if (again.code != 0) {
    violation("the same command fails", story);
  }
  const std::string now = fingerprint(world);
  if (now == reference_.after.complete) {
    return;
  }
  const Result recovered = world.vfpass({"recover"});
  const std::string later = fingerprint(world);
  if (later == reference_.after.complete || later == reference_.before.complete) {
    report_.count("  new state only after recover");
    return;
  }
  violation("the same command does not reach the new state",
            story + "    against new:\n" + difference(now, reference_.after.complete) +
                commandText("recover", recovered.code, recovered.output) +
                difference(later, reference_.after.complete));
}

Bench::Expectation Bench::afterReboot() const {
  return {afterRebootOf(reference_.before.withoutKernel),
          afterRebootOf(reference_.after.withoutKernel),
          {},
          false};
}

void Bench::checkReboot(World& world, const std::string& story) {
  world.reboot();
  checkRecovery(world, story, afterReboot());
}

void Bench::checkPowerFailure(World& world, const std::string& story, std::uint32_t variant,
                              long point) {
  world.failPower(
      variant == 0 ? SimulatedDisk::Survivors::synced : SimulatedDisk::Survivors::random,
      variant * 100'000U + static_cast<std::uint32_t>(point));
  checkRecovery(world, story, afterReboot());
}

// The domain starts, if it does not run and the hook permits it, and stops before anybody recovers.
void Bench::checkStart(World& world, std::string story) {
  if (!world.domain(scenario_.domain).active) {
    const Result started = world.start(scenario_.domain);
    story += commandText("start", started.code, started.output);
    if (started.code == 0) {
      report_.count("  started after a kill");
    }
  }
  checkStop(world, story);
}

void Bench::checkStop(World& world, std::string story) {
  if (world.domain(scenario_.domain).active) {
    report_.count("  stopped after a kill");
    const Result stopped = world.stop(scenario_.domain);
    story += commandText("stop", stopped.code, stopped.output);
  }
  checkRecovery(world, story, oldOrNew(reference_.started));
}

void Bench::checkNestedKills(const World& world, const std::string& story, long second) {
  const Place place = place_;
  for (long at = second == 0 ? 1 : second;; ++at) {
    World copy(world, scratch_ / "nested");
    Fault kill{FaultMode::kill, std::nullopt, 0, 0, at};
    const Result killed = copy.vfpass({"recover"}, kill);
    if (!killed.fired) {
      break;
    }
    report_.count("  kills of recover");
    place_ = {place.description + ", recover killed at " + std::to_string(at),
              place.command + " --second " + std::to_string(at)};
    const std::string nested = story + "    recover killed before: " + killed.faulted + '\n';
    if (!scenario_.domain.empty() && copy.domain(scenario_.domain).active) {
      World stopping(copy, scratch_ / "stopping");
      checkStop(stopping, nested);
    }
    checkRecovery(copy, nested, oldOrNew(reference_.recovered));
    if (second != 0) {
      break;
    }
  }
}

void Bench::recoverTooEarly(World& world, std::string story) {
  if (world.kernel.hasPendingWrites()) {
    const Result early = world.vfpass({"recover"});
    story += commandText("recover while the write is pending", early.code, early.output);
    report_.count(early.code == 0 && openOperationsIn(world) == 0
                      ? "  recovered although a write was pending"
                      : "  recovery refused while a write was pending");
    world.kernel.finishPending();
  }
  checkRecovery(world, story, oldOrNew(reference_.recovered));
}

}  // namespace vfpass::crash
