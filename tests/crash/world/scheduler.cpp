#include "world/scheduler.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "vfpass/base/text.hpp"
#include "worker/world_socket.hpp"

namespace vfpass::crash {
namespace {

// Of real time. Nothing but the process itself runs between two of its requests.
constexpr std::chrono::seconds longestStep{60};
// At which somebody who waits for a lock looks at his deadline.
constexpr std::int64_t lockInterval = 10'000'000;

bool waitsForLock(const Message& request) { return request.at(0) == "lock"; }
bool isAttempt(const Message& request) { return request.at(0) == "attempt"; }
bool sleeps(const Message& request) { return request.at(0) == "sleep"; }

// The kernel's own error says that nothing has changed. A reply is lost with the helper process
// that made the call (ECHILD).
Message failureReply(const Message& request, Scheduler::Effect effect) {
  const ChangeClass changeClass = classOf(request);
  const bool helperDied =
      effect == Scheduler::Effect::replyLost && changeClass == ChangeClass::kernel;
  const int error = helperDied ? ECHILD : EIO;
  return failureOf(changeClass, error, errnoText(error));
}

}  // namespace

Scheduler::Scheduler(World& world, std::int64_t tick) : world_(world), tick_(tick) {
  sharedState().clock = 0;
  sharedState().setTo = 0;
}

Scheduler::~Scheduler() {
  processes_.clear();
  sharedState().clock = SharedState::realTime;
}

Scheduler::Process& Scheduler::launch(const Program& program, const std::string& name) {
  processes_.emplace_back(world_, program, name);
  runToRequest(processes_.back());
  return processes_.back();
}

void Scheduler::remove(Process& process) {
  processes_.remove_if([&](const Process& each) { return &each == &process; });
}

bool Scheduler::isReady(const Process& process) const {
  if (process.ended_) {
    return false;
  }
  if (sleeps(process.request_)) {
    return sharedState().clock >= process.wakesAt_;
  }
  return !waitsForLock(process.request_) || process.seen_ != changes_;
}

bool Scheduler::canFail(const Message& request) {
  const ChangeClass changeClass = classOf(request);
  return changeClass != ChangeClass::none && changeClass != ChangeClass::start;
}

void Scheduler::step(Process& process, Effect effect) {
  sharedState().clock += tick_;
  const Message request = process.request_;
  Message reply{};
  if (effect != Effect::refused) {
    reply = *process.exchange_.serve(request);
  }
  if (effect != Effect::done) {
    reply = failureReply(request, effect);
  }
  if (!waitsForLock(request) && !isAttempt(request)) {  // neither frees a lock
    ++changes_;
  }
  process.worker_.answer(reply);
  runToRequest(process);
  world_.disk.settle();
  setFileTime(request);
}

// vfpass compares the times of its files with the clock.
void Scheduler::setFileTime(const Message& request) const {
  const bool isFile = classOf(request) == ChangeClass::file;
  if (!isFile || request.at(1) == "fsync" || request.at(1) == "fdatasync") {
    return;
  }
  const timespec now = virtualTime(CLOCK_REALTIME);
  const std::array<timespec, 2> times{now, now};
  const std::string path =
      world_.files.root().string() + request.at(request.at(1) == "rename" ? 3 : 2);
  ::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
}

void Scheduler::runToRequest(Process& process) {
  switch (process.worker_.wait(longestStep)) {
    case Worker::Event::timeout:
      throw std::runtime_error(process.name() + " hangs without a request");
    case Worker::Event::ended:
      process.ended_ = true;
      process.result_ = process.exchange_.result();
      process.worker_.complete(process.result_);
      ++changes_;
      return;
    case Worker::Event::request:
      break;
  }
  process.request_ = process.worker_.request();
  process.seen_ = changes_;
  if (sleeps(process.request_)) {
    process.wakesAt_ = sharedState().clock + std::atoll(process.request_.at(1).c_str());
  }
}

void Scheduler::kill(Process& process) {
  process.worker_.kill();
  process.killed_ = true;
  process.ended_ = true;
  process.result_ = process.exchange_.result();
  process.worker_.complete(process.result_);
  ++changes_;
}

void Scheduler::changeDate(std::chrono::nanoseconds change) {
  sharedState().setTo += change.count();
}

std::chrono::nanoseconds Scheduler::now() { return std::chrono::nanoseconds(sharedState().clock); }

bool Scheduler::passTime() {
  std::optional<std::int64_t> next;
  for (const Process& process : processes_) {
    if (process.ended_) {
      continue;
    }
    if (sleeps(process.request_)) {
      next = std::min(next.value_or(process.wakesAt_), process.wakesAt_);
    } else if (waitsForLock(process.request_)) {
      const std::int64_t look = sharedState().clock + lockInterval;
      next = std::min(next.value_or(look), look);
    }
  }
  if (!next) {
    return false;
  }
  sharedState().clock = std::max(sharedState().clock.load(), *next);
  ++changes_;
  return true;
}

}  // namespace vfpass::crash
