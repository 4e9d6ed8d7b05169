#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "worker/worker.hpp"
#include "world/exchange.hpp"

namespace vfpass::crash {

/// Runs processes on one host, of which only one runs at a time, from one of its requests to the
/// next. It owns their clocks and their locks, so the order of the calls below determines
/// everything that happens.
class Scheduler {
 public:
  class Process {
   public:
    Process(World& world, const Program& program, std::string name)
        : name_(std::move(name)), worker_(world.files.root(), program), exchange_(world, {}) {}

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] bool killed() const { return killed_; }
    /// What it asks for, as long as it has not ended.
    [[nodiscard]] const Message& request() const { return request_; }
    /// After the end.
    [[nodiscard]] const Result& result() const { return result_; }

   private:
    friend class Scheduler;
    std::string name_;
    Worker worker_;
    Exchange exchange_;
    Message request_;
    std::int64_t wakesAt_ = 0;  // of a request to sleep
    unsigned long seen_ = 0;    // `changes_` when it began to wait for a lock
    bool ended_ = false;
    bool killed_ = false;
    Result result_;
  };

  /// `tick`: nanoseconds that each request takes.
  Scheduler(World& world, std::int64_t tick);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  /// Kills what still runs. Workers have real time again.
  ~Scheduler();

  /// Starts a program, which runs to its first request.
  Process& launch(const Program& program, const std::string& name);
  /// Forgets a process that has ended.
  void remove(Process& process);

  /// Whether it neither sleeps nor waits for a lock that nobody can have released meanwhile.
  [[nodiscard]] bool isReady(const Process& process) const;

  enum class Effect {
    done,
    refused,   ///< the change or query fails
    replyLost  ///< the change takes effect, but the process gets an error
  };
  /// Answers its request; it runs to its next one or to its end.
  void step(Process& process, Effect effect = Effect::done);
  /// Whether the request can have another effect than `done`.
  [[nodiscard]] static bool canFail(const Message& request);
  void kill(Process& process);
  /// Somebody sets the date; monotonic clocks go on.
  static void changeDate(std::chrono::nanoseconds change);

  /// Since the scheduler began.
  [[nodiscard]] static std::chrono::nanoseconds now();
  /// Lets time pass until a process is ready. False if none waits for time or for a lock.
  bool passTime();

 private:
  void runToRequest(Process& process);
  void setFileTime(const Message& request) const;

  World& world_;
  std::int64_t tick_;
  unsigned long changes_ = 0;
  std::list<Process> processes_;
};

}  // namespace vfpass::crash
