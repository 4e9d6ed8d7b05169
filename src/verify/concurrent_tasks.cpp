#include "concurrent_tasks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>

#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

// Throws once for each task: the cleanup that follows uses the same agents.
agent::Agent::Checkpoint stopWhen(const std::atomic<bool>& stop) {
  return [&stop, told = std::make_shared<std::atomic<bool>>(false)] {
    if (stop && !told->exchange(true)) {
      throw Error("stopped");
    }
  };
}

// Waits for every worker, whatever the checkpoint throws.
std::exception_ptr waitForAll(std::vector<std::future<void>>& workers,
                              const agent::Agent::Checkpoint& checkpoint, std::atomic<bool>& stop) {
  constexpr std::chrono::milliseconds interval{100};
  std::exception_ptr stopped;
  for (auto& worker : workers) {
    while (worker.wait_for(interval) != std::future_status::ready) {
      try {
        checkpoint();
      } catch (...) {
        stopped = std::current_exception();
        stop = true;
      }
    }
  }
  return stopped;
}

}  // namespace

void runConcurrently(const std::vector<Task>& tasks, std::size_t workers,
                     const agent::Agent::Checkpoint& checkpoint) {
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t mine = next++; mine < tasks.size() && !stop; mine = next++) {
      tasks[mine](stopWhen(stop));
    }
  };
  std::vector<std::future<void>> running;
  for (std::size_t i = 0; i < std::min(workers, tasks.size()); ++i) {
    running.push_back(std::async(std::launch::async, work));
  }
  const std::exception_ptr stopped = waitForAll(running, checkpoint, stop);
  for (auto& worker : running) {
    worker.get();
  }
  if (stopped) {
    std::rethrow_exception(stopped);
  }
}

}  // namespace vfpass::verify
