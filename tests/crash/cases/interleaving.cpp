#include "cases/interleaving.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "vfpass/base/text.hpp"

namespace vfpass::crash {
namespace {

constexpr std::int64_t tick = 10'000;  // nanoseconds for each request

}  // namespace

Interleaving::Interleaving(World& world) : scheduler(world, tick) {}

Interleaving::Process& Interleaving::launch(const std::vector<std::string>& words) {
  Program program{{"vfpass"}, ""};
  program.arguments.insert(program.arguments.end(), words.begin(), words.end());
  return launch(program, join(words, " "));
}

Interleaving::Process& Interleaving::launch(const Program& program, const std::string& name) {
  std::cout << name << " begins\n";
  processes_.push_back(&scheduler.launch(program, name));
  return *processes_.back();
}

Interleaving::Process* Interleaving::nextProcess() {
  const auto next = std::find_if(processes_.begin(), processes_.end(), [this](Process* process) {
    return scheduler.isReady(*process) && gate(*process);
  });
  return next == processes_.end() ? nullptr : *next;
}

void Interleaving::printEnd(const Process& process) {
  std::cout << process.name() << " ends with " << process.result().code << '\n'
            << process.result().output;
}

void Interleaving::runUntil(const std::function<bool()>& condition) {
  while (!condition()) {
    Process* const process = nextProcess();
    if (process == nullptr) {
      if (!condition() && !scheduler.passTime()) {  // a gate may have fulfilled it
        throw std::runtime_error("no process continues");
      }
      continue;
    }
    const ChangeClass changeClass = classOf(process->request());
    if (Interleaving::waitsFor(*process, "lock") || changeClass == ChangeClass::libvirt ||
        changeClass == ChangeClass::kernel) {
      std::cout << "  " << process->name() << ": " << describe(process->request()) << '\n';
    }
    scheduler.step(*process);
    if (process->ended()) {
      printEnd(*process);
    }
  }
}

void Interleaving::runToEnd() {
  runUntil([this] {
    return std::all_of(processes_.begin(), processes_.end(),
                       [](const Process* process) { return process->ended(); });
  });
}

void Interleaving::kill(Process& process) {
  scheduler.kill(process);
  std::cout << process.name() << " is killed\n";
}

}  // namespace vfpass::crash
