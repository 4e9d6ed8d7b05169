#include "schedule/explorer.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>

#include "schedule/jobs.hpp"
#include "schedule/shrink.hpp"

namespace vfpass::crash {
namespace {

unsigned pick(std::mt19937& random, unsigned below) {
  return static_cast<unsigned>(random() % below);
}

// Which deviations a run has, and how many of 10,000 steps. Runs differ in that, because faults
// hide from a mixture of everything.
struct Rates {
  unsigned other = 0;
  unsigned kill = 0;
  unsigned refuse = 0;
  unsigned loseReply = 0;
  unsigned power = 0;
  unsigned date = 0;
};

Rates randomRates(std::mt19937& random) {
  constexpr std::array<unsigned, 5> often{50, 200, 800, 2500, 5000};
  Rates rates;
  rates.other = often.at(pick(random, often.size()));
  rates.kill = pick(random, 2) == 0 ? 20 : 0;
  rates.refuse = pick(random, 4) == 0 ? 20 : 0;
  rates.loseReply = pick(random, 4) == 0 ? 20 : 0;
  rates.power = pick(random, 4) == 0 ? 15 : 0;
  rates.date = pick(random, 8) == 0 ? 50 : 0;
  return rates;
}

Chooser randomChooser(std::mt19937& random, const Rates& rates) {
  return [&random, rates](const Moment& moment) -> std::optional<Deviation> {
    unsigned number = pick(random, 10'000);
    const auto isBelow = [&number](unsigned rate) {
      const bool below = number < rate;
      number -= below ? 0 : rate;
      return below;
    };
    if (isBelow(rates.power)) {
      return Deviation{moment.step, Turn::power, 0};
    }
    if (isBelow(rates.date)) {
      return Deviation{moment.step, Turn::date, pick(random, 4)};
    }
    if (moment.request != nullptr) {
      if (isBelow(rates.kill)) {
        return Deviation{moment.step, Turn::kill, moment.actor};
      }
      if (isBelow(rates.refuse) && Scheduler::canFail(*moment.request)) {
        return Deviation{moment.step, Turn::refuse, moment.actor};
      }
      if (isBelow(rates.loseReply) && Scheduler::canFail(*moment.request)) {
        return Deviation{moment.step, Turn::loseReply, moment.actor};
      }
    }
    if (!moment.others.empty() && isBelow(rates.other)) {
      const auto other =
          moment.others.at(pick(random, static_cast<unsigned>(moment.others.size())));
      return Deviation{moment.step, Turn::other, other};
    }
    return std::nullopt;
  };
}

Action randomAction(std::mt19937& random, const std::vector<std::string>& vms) {
  static const std::vector<std::string> verbs{"attach", "attach",  "attach", "detach",
                                              "detach", "start",   "start",  "stop",
                                              "crash",  "recover", "gc",     "status"};
  const std::string& verb = verbs.at(pick(random, static_cast<unsigned>(verbs.size())));
  const bool ofVm = verb != "recover" && verb != "gc" && verb != "status";
  return {verb, ofVm ? vms.at(pick(random, static_cast<unsigned>(vms.size()))) : ""};
}

// The first word of a fault, which shrinking must not change.
std::string kindOf(const std::string& fault) { return fault.substr(0, fault.find_first_of(":\n")); }

}  // namespace

Explorer::Explorer(const std::filesystem::path& scratch, bool twice)
    : twice_(twice), hosts_(makeHosts(scratch)) {}

const HostSetUp& Explorer::hostOf(const Schedule& schedule) const {
  for (const auto& host : hosts_) {
    if (host.name == schedule.host) {
      return host;
    }
  }
  throw std::invalid_argument("no host " + schedule.host);
}

Outcome Explorer::run(const Schedule& schedule, const Chooser& chooser) {
  return Run(hostOf(schedule), schedule, chooser).execute();
}

Outcome Explorer::repeat(const Schedule& schedule) { return run(schedule, asScheduled(schedule)); }

void Explorer::count(const Outcome& outcome) {
  findings_.add({{outcome.trace}, outcome.counts, 1, outcome.steps, 0});
}

void Explorer::judge(Schedule schedule, const Outcome& outcome, const std::string& origin) {
  count(outcome);
  schedule.deviations = outcome.deviations;
  if (twice_) {
    const Schedule same = parseSchedule(toText(schedule));
    const Outcome again = repeat(same);
    if (again.trace != outcome.trace || again.faults.empty() != outcome.faults.empty()) {
      ++findings_.violations;
      std::string text = origin + ": not repeatable: " + toText(schedule) + '\n';
      for (std::size_t at = 0; at < std::max(outcome.log.size(), again.log.size()); ++at) {
        const std::string one = at < outcome.log.size() ? outcome.log[at] : "-";
        const std::string other = at < again.log.size() ? again.log[at] : "-";
        if (one != other) {
          text += "  first:  " + one + "\n  second: " + other + '\n';
          break;
        }
      }
      for (const auto& fault : again.faults) {
        text += "  second: FAULT " + fault + '\n';
      }
      printWhole(text);
    }
  }
  if (outcome.faults.empty()) {
    return;
  }
  ++findings_.violations;
  const std::string kind = kindOf(outcome.faults.front());
  const Schedule smallest = shrink(schedule, [&](const Schedule& smaller) {
    const auto faults = repeat(smaller).faults;
    return std::any_of(faults.begin(), faults.end(),
                       [&](const std::string& fault) { return kindOf(fault) == kind; });
  });
  printWhole("VIOLATION " + outcome.faults.front() + "\n  found by: " + origin +
             "\n  whole: " + toText(schedule) + '\n' + logOf(smallest));
}

void Explorer::replay(const Schedule& schedule) { printWhole(logOf(schedule)); }

std::string Explorer::logOf(const Schedule& schedule) {
  std::ostringstream text;
  for (const auto& line : repeat(schedule).log) {
    text << "  " << line << '\n';
  }
  text << "  repeat: vfpass-crash-schedule --replay '" << toText(schedule) << "'\n";
  return text.str();
}

Schedule Explorer::randomActors(std::mt19937& random) const {
  constexpr std::array<std::int64_t, 4> ticks{10'000, 10'000, 1'000'000, 50'000'000};
  const HostSetUp& host = hosts_.at(pick(random, static_cast<unsigned>(hosts_.size())));
  Schedule schedule{host.name, ticks.at(pick(random, ticks.size())), {}, {}};
  const unsigned actors = 2 + pick(random, 3);
  for (unsigned at = 0; at < actors; ++at) {
    Actor actor;
    for (unsigned actions = 1 + pick(random, 3); actions > 0; --actions) {
      actor.push_back(randomAction(random, host.vms));
    }
    schedule.actors.push_back(actor);
  }
  return schedule;
}

void Explorer::explore(const Seeds& seeds, std::chrono::seconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  for (long at = 0; at < seeds.end && std::chrono::steady_clock::now() < end; at += seeds.every) {
    const auto seed = static_cast<std::uint32_t>(seeds.first + at);
    std::mt19937 random(seed);
    const Schedule schedule = randomActors(random);
    const Rates rates = randomRates(random);
    judge(schedule, run(schedule, randomChooser(random, rates)), "seed " + std::to_string(seed));
  }
}

void Explorer::explorePair(const Schedule& pair, Steps steps) {
  const std::size_t second = pair.actors.size() - 1;
  for (long step = steps.first;; step += steps.every) {
    Schedule schedule = pair;
    schedule.deviations = {{step, Turn::other, second}};
    const Outcome outcome = run(schedule, asScheduled(schedule));
    if (!outcome.deviations.empty()) {
      judge(schedule, outcome, "pairs");
    } else if (step >= outcome.stepsOfActors.front()) {
      return;  // the first actor had ended
    }
  }
}

void Explorer::explorePairs(unsigned part, unsigned parts, Steps steps) {
  const std::vector<Actor> actors{{{"attach", "vm0"}},
                                  {{"detach", "vm0"}},
                                  {{"attach", "vm0"}, {"detach", "vm0"}},
                                  {{"attach", "vm1"}},
                                  {{"attach", "vm1"}, {"start", "vm1"}},
                                  {{"attach", "vm0"}, {"start", "vm0"}},
                                  {{"attach", "vm0"}, {"start", "vm0"}, {"stop", "vm0"}},
                                  {{"attach", "vm0"}, {"start", "vm0"}, {"crash", "vm0"}},
                                  {{"start", "vm0"}, {"attach", "vm0"}, {"detach", "vm0"}},
                                  {{"recover", ""}},
                                  {{"gc", ""}},
                                  {{"status", ""}}};
  unsigned number = 0;
  for (const auto& host : hosts_) {
    for (const auto& one : actors) {
      for (const auto& other : actors) {
        if (number++ % parts == part) {
          explorePair({host.name, 10'000, {one, other}, {}}, steps);
        }
      }
    }
  }
}

}  // namespace vfpass::crash
