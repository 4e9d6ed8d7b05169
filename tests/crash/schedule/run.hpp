#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/host_checks.hpp"
#include "schedule/schedule.hpp"
#include "world/scheduler.hpp"

namespace vfpass::crash {

/// A step, before it is decided what happens at it.
struct Moment {
  long step = 0;
  std::size_t actor = 0;             ///< who would go on
  std::vector<std::size_t> others;   ///< who could go on as well
  const Message* request = nullptr;  ///< of the actor's process; null: he begins something
};

/// Returns what to do instead of going on.
using Chooser = std::function<std::optional<Deviation>(const Moment&)>;

/// The deviations of a schedule at their steps.
Chooser asScheduled(const Schedule& schedule);

struct Outcome {
  std::vector<std::string> faults;
  std::vector<std::string> log;
  std::vector<Deviation> deviations;  ///< those that happened
  std::uint64_t trace = 0;  ///< a hash of all steps with their requests: equal for equal schedules
  long steps = 0;
  std::vector<long> stepsOfActors;
  std::map<std::string, long> counts;
};

/// Runs a schedule, whose deviations the chooser decides, on a copy of a host,
/// of which there is one at a time.
class Run {
 public:
  Run(const HostSetUp& host, const Schedule& schedule, Chooser chooser);
  Outcome execute();

 private:
  struct State {
    const Actor* actions = nullptr;
    std::size_t next = 0;  // the action that begins next
    Scheduler::Process* process = nullptr;
    Action current;
    std::string hookCall;  // of the process; empty: a command
    long began = 0;
  };
  /// An attach or detach that ended.
  struct Ended {
    Action action;
    bool succeeded = false;
    long began = 0;
    long ended = 0;
  };

  bool runNext();
  [[nodiscard]] std::vector<std::size_t> ready() const;
  [[nodiscard]] bool isReady(const State& actor) const;
  [[nodiscard]] bool isLocked(const Message& request) const;
  void perform(std::size_t actor, Turn turn);
  void begin(State& actor);
  void launch(State& actor, const Program& program, const std::string& name);
  void launchHook(State& actor, const std::string& call, const std::string& xml);
  void step(std::size_t actor, Scheduler::Effect effect);
  void finish(State& actor);
  void finishHook(State& actor, int code);
  void losePower();
  void changeDate(std::size_t number);
  [[nodiscard]] std::vector<HostChecks::Promise> promises() const;
  void note(const std::string& line) { outcome_.log.push_back(line); }
  void trace(std::size_t actor, const std::string& text);

  World world_;
  HostChecks checks_;
  Chooser chooser_;
  std::vector<State> actors_;
  std::size_t current_ = 0;
  std::set<std::string> inHook_;  // domains whose lock libvirt holds
  bool lostPower_ = false;
  std::vector<Ended> ended_;
  Outcome outcome_;
  std::optional<Scheduler> scheduler_;
};

}  // namespace vfpass::crash
