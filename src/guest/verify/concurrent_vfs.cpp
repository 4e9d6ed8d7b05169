#include "concurrent_vfs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>

#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

using Gpus = std::map<std::string, std::vector<std::size_t>>;

bool shareGpu(const Lease& one, const Lease& other, const Gpus& gpus) {
  const auto first = gpus.find(one.entry);
  const auto second = gpus.find(other.entry);
  return first != gpus.end() && second != gpus.end() &&
         std::ranges::find_first_of(first->second, second->second) != first->second.end();
}

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

std::vector<VfGroup> independentVfs(const std::vector<Lease>& leases, const Gpus& gpus) {
  std::vector<VfGroup> groups;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const auto dependent = [&](const VfGroup& group) {
      return std::ranges::any_of(group, [&](std::size_t other) {
        return leases[i].pf == leases[other].pf || shareGpu(leases[i], leases[other], gpus);
      });
    };
    // This VF may connect groups that were independent so far.
    VfGroup joined;
    for (const VfGroup& group : groups) {
      if (dependent(group)) {
        joined.insert(joined.end(), group.begin(), group.end());
      }
    }
    std::erase_if(groups, dependent);
    joined.push_back(i);
    std::ranges::sort(joined);
    groups.push_back(joined);
  }
  std::ranges::sort(groups);
  return groups;
}

std::size_t concurrentGroups(std::size_t groups, unsigned vcpus) {
  return std::max<std::size_t>(1, std::min<std::size_t>(groups, vcpus / 2));
}

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
