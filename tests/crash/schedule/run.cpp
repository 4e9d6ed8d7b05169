#include "schedule/run.hpp"

#include <algorithm>
#include <array>

namespace vfpass::crash {
namespace {

// A run that takes longer waits for something that never happens.
constexpr long mostSteps = 100'000;

bool isOfLibvirt(const Message& request) {
  const ChangeClass changeClass = classOf(request);
  return changeClass == ChangeClass::libvirt || changeClass == ChangeClass::query;
}

// A lock file contains the PID of its holder, which has more digits in one run than in another.
Message withoutPid(Message request) {
  if (request.at(0) == "file" && request.at(2).ends_with(".lock")) {
    request.resize(3);
  }
  return request;
}

// A file in the state directory is created, written, renamed or removed.
bool isOfDatabase(const Message& request) {
  return request.at(0) == "file" &&
         std::any_of(request.begin() + 2, request.end(),
                     [](const std::string& path) { return path.starts_with("/var/lib/vfpass"); });
}

// A VM that crashes ends while libvirt is down, so that nobody calls the hook.
bool isOfGuest(const Action& action) {
  return action.verb == "start" || action.verb == "stop" || action.verb == "crash";
}

std::vector<std::string> wordsOf(const Action& action) {
  std::vector<std::string> words{"vfpass", action.verb};
  if (!action.vm.empty()) {
    words.push_back(action.vm);
  }
  if (action.verb == "detach") {
    words.emplace_back("--force");
  }
  return words;
}

}  // namespace

Chooser asScheduled(const Schedule& schedule) {
  return [deviations = schedule.deviations,
          next = std::size_t{0}](const Moment& moment) mutable -> std::optional<Deviation> {
    while (next < deviations.size() && deviations[next].step < moment.step) {
      ++next;
    }
    return next < deviations.size() && deviations[next].step == moment.step
               ? std::optional(deviations[next])
               : std::nullopt;
  };
}

Run::Run(const HostSetUp& host, const Schedule& schedule, Chooser chooser)
    : world_(*host.world, host.filesForRun()), checks_(world_, host), chooser_(std::move(chooser)) {
  for (const auto& actor : schedule.actors) {
    actors_.push_back({&actor, 0, nullptr, {}, "", 0});
  }
  outcome_.stepsOfActors.resize(actors_.size());
  scheduler_.emplace(world_, schedule.tick);
}

Outcome Run::execute() {
  while (runNext()) {
    if (outcome_.steps > mostSteps) {
      checks_.fault("no end: " + std::to_string(mostSteps) + " steps");
      break;
    }
  }
  scheduler_.reset();
  checks_.checkEnd(promises(), lostPower_);
  outcome_.faults = checks_.faults();
  for (const auto& fault : outcome_.faults) {
    note("FAULT " + fault);
  }
  return std::move(outcome_);
}

// libvirt holds a domain's lock while its hook runs, and listing takes the locks of all domains.
bool Run::isLocked(const Message& request) const {
  if (!isOfLibvirt(request)) {
    return false;
  }
  if (request.at(0) == "list") {
    return !inHook_.empty();
  }
  return std::any_of(inHook_.begin(), inHook_.end(), [&](const std::string& vm) {
    for (const auto& domain : world_.hypervisor.domains) {
      if (domain.name == vm &&
          (request.at(1) == vm || request.at(1).find(toString(domain.uuid)) != std::string::npos)) {
        return true;
      }
    }
    return false;
  });
}

bool Run::isReady(const State& actor) const {
  if (actor.process != nullptr) {
    return scheduler_->isReady(*actor.process) && !isLocked(actor.process->request());
  }
  if (actor.next >= actor.actions->size()) {
    return false;
  }
  const Action& action = (*actor.actions)[actor.next];
  return !isOfGuest(action) || !inHook_.contains(action.vm);
}

std::vector<std::size_t> Run::ready() const {
  std::vector<std::size_t> all;
  for (std::size_t at = 0; at < actors_.size(); ++at) {
    if (isReady(actors_[at])) {
      all.push_back(at);
    }
  }
  return all;
}

// False when all is done.
bool Run::runNext() {
  std::vector<std::size_t> others = ready();
  while (others.empty()) {
    if (!scheduler_->passTime()) {
      return false;
    }
    others = ready();
  }
  if (std::find(others.begin(), others.end(), current_) == others.end()) {
    current_ = others.front();
  }
  std::erase(others, current_);
  const long step = outcome_.steps++;
  const auto* const process = actors_[current_].process;
  const Moment moment{step, current_, others, process == nullptr ? nullptr : &process->request()};
  auto deviation = chooser_(moment);
  if (deviation && deviation->turn == Turn::power) {
    outcome_.deviations.push_back(*deviation);
    losePower();
    return false;
  }
  if (deviation && deviation->turn == Turn::date) {
    outcome_.deviations.push_back(*deviation);
    changeDate(deviation->actor);
    deviation.reset();
  }
  if (deviation && (deviation->actor >= actors_.size() || !isReady(actors_[deviation->actor]) ||
                    (deviation->turn == Turn::other && deviation->actor == current_))) {
    deviation.reset();
  }
  if (deviation) {
    outcome_.deviations.push_back(*deviation);
    current_ = deviation->actor;
  }
  perform(current_, deviation ? deviation->turn : Turn::other);
  return true;
}

void Run::trace(std::size_t actor, const std::string& text) {
  // FNV-1a
  for (const char character : std::to_string(actor) + text) {
    outcome_.trace = (outcome_.trace ^ static_cast<unsigned char>(character)) * 1099511628211U;
  }
}

void Run::perform(std::size_t actor, Turn turn) {
  State& state = actors_[actor];
  ++outcome_.stepsOfActors[actor];
  if (state.process == nullptr) {
    begin(state);
    return;
  }
  switch (turn) {
    case Turn::kill:
      ++outcome_.counts["kills"];
      note("kill " + state.process->name() + " before " + describe(state.process->request()));
      trace(actor, "kill");
      scheduler_->kill(*state.process);
      break;
    case Turn::refuse:
      step(actor, Scheduler::Effect::refused);
      break;
    case Turn::loseReply:
      step(actor, Scheduler::Effect::replyLost);
      break;
    case Turn::other:
    case Turn::power:
    case Turn::date:
      step(actor, Scheduler::Effect::done);
      break;
  }
  if (state.process->ended()) {
    finish(state);
  }
}

void Run::step(std::size_t actor, Scheduler::Effect effect) {
  Scheduler::Process& process = *actors_[actor].process;
  const Message request = process.request();
  if (!Scheduler::canFail(request)) {
    effect = Scheduler::Effect::done;
  }
  const char* const mark = effect == Scheduler::Effect::done      ? ""
                           : effect == Scheduler::Effect::refused ? "REFUSED "
                                                                  : "REPLY LOST ";
  outcome_.counts["failed requests"] += effect == Scheduler::Effect::done ? 0 : 1;
  trace(actor, mark + describe(withoutPid(request)));
  note(std::to_string(outcome_.steps - 1) + "   " + process.name() + ": " + mark +
       describe(request));
  scheduler_->step(process, effect);
  if (isOfDatabase(request)) {
    checks_.databaseChanged();
  }
  const ChangeClass changeClass = classOf(request);
  if (changeClass == ChangeClass::kernel || changeClass == ChangeClass::libvirt) {
    checks_.checkRunning(inHook_);
  }
}

void Run::begin(State& actor) {
  actor.current = (*actor.actions)[actor.next++];
  actor.began = outcome_.steps;
  const auto& [verb, vm] = actor.current;
  if (verb == "start" && !world_.domain(vm).active) {
    launchHook(actor, "prepare", world_.domain(vm).persistentXml);
  } else if (verb == "stop" && world_.domain(vm).active) {
    const std::string xml = world_.domain(vm).liveXml;
    world_.endWithoutHook(vm);
    launchHook(actor, "release", xml);
  } else if (verb == "crash" && world_.domain(vm).active) {
    world_.endWithoutHook(vm);
  } else if (!isOfGuest(actor.current)) {
    launch(actor, {wordsOf(actor.current), ""}, toText(actor.current));
  }
}

void Run::launch(State& actor, const Program& program, const std::string& name) {
  note("begin " + name);
  actor.process = &scheduler_->launch(program, name);
  if (actor.process->ended()) {
    finish(actor);
  }
}

void Run::launchHook(State& actor, const std::string& call, const std::string& xml) {
  const std::string& vm = actor.current.vm;
  actor.hookCall = call;
  inHook_.insert(vm);
  launch(actor, {{"hook", vm, call, call == "release" ? "end" : "begin", "-"}, xml},
         "hook " + call + ' ' + vm);
}

void Run::finish(State& actor) {
  const Result result = actor.process->result();
  const bool killed = actor.process->killed();
  const std::string name = actor.process->name();
  note("end " + name + ' ' + std::to_string(result.code) + ' ' + result.output);
  ++outcome_.counts[name.substr(0, name.find(" vm")) + (killed             ? " killed"
                                                        : result.code == 0 ? " succeeded"
                                                                           : " refused")];
  if (result.signal != 0 && !killed) {
    checks_.fault("crash: " + name + " ended with signal " + std::to_string(result.signal));
  }
  if (result.output.find("internal error") != std::string::npos) {
    checks_.fault("internal error: " + name + ": " + result.output);
  }
  for (const auto& line : result.unjournaled) {
    checks_.fault("not in the journal: " + line);
  }
  scheduler_->remove(*actor.process);
  actor.process = nullptr;
  checks_.checkLeases();
  if (!actor.hookCall.empty()) {
    finishHook(actor, killed ? 1 : result.code);
  } else if (actor.current.verb == "attach" || actor.current.verb == "detach") {
    ended_.push_back({actor.current, result.code == 0, actor.began, outcome_.steps});
  }
}

// libvirt calls `started` after a start and `release` after a refused one.
void Run::finishHook(State& actor, int code) {
  const std::string vm = actor.current.vm;
  const std::string call = std::exchange(actor.hookCall, "");
  inHook_.erase(vm);
  if (call != "prepare") {
    return;
  }
  if (code != 0) {
    launchHook(actor, "release", world_.domain(vm).persistentXml);
    return;
  }
  world_.startWithoutHook(vm);
  checks_.checkStarted(vm);
  launchHook(actor, "started", world_.domain(vm).liveXml);
}

void Run::changeDate(std::size_t number) {
  constexpr std::array<std::chrono::hours, 4> changes{
      std::chrono::hours(-1), std::chrono::hours(24), std::chrono::hours(-24 * 3650),
      std::chrono::hours(24 * 3650)};
  const auto change = changes.at(number % changes.size());
  note("the date changes by " + std::to_string(change.count()) + " h");
  trace(number, "date");
  ++outcome_.counts["changes of the date"];
  Scheduler::changeDate(change);
}

void Run::losePower() {
  note("the host loses power");
  trace(0, "power");
  ++outcome_.counts["power failures"];
  lostPower_ = true;
  for (State& actor : actors_) {
    if (actor.process != nullptr) {
      scheduler_->kill(*actor.process);
    }
  }
  inHook_.clear();
  world_.failPower(SimulatedDisk::Survivors::random, static_cast<std::uint32_t>(outcome_.steps));
  checks_.databaseChanged();
}

std::vector<HostChecks::Promise> Run::promises() const {
  std::vector<HostChecks::Promise> all;
  for (const Ended& last : ended_) {
    const bool isLast = std::all_of(ended_.begin(), ended_.end(), [&](const Ended& other) {
      return &other == &last || other.action.vm != last.action.vm || other.ended < last.began;
    });
    const bool goesOn = std::any_of(actors_.begin(), actors_.end(), [&](const State& actor) {
      return actor.process != nullptr && actor.hookCall.empty() &&
             actor.current.vm == last.action.vm;  // it had not ended when the power failed
    });
    if (isLast && !goesOn && last.succeeded) {
      all.push_back({last.action.vm, last.action.verb == "attach"});
    }
  }
  return all;
}

}  // namespace vfpass::crash
