#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "vfpass/base/deadline.hpp"

namespace vfpass {

/// Calls of callWithin() that still run. Whoever owns an object that such a call uses must not
/// destroy it as long as there is one.
inline std::atomic<int> callsInProgress{0};

/// Runs `work` in a thread of its own and returns its result, or throws its exception. For calls
/// into libraries that have no timeout and wait for somebody else: libvirt does not return from
/// one while a guest agent or another host does not answer, and restarts poll(2) after a signal.
/// nullopt after `timeout`; the call is then abandoned and continues. So it does if `checkpoint`,
/// called every 100 ms, throws. `work` must own whatever it uses, except as callsInProgress says.
template <typename Work>
std::optional<std::invoke_result_t<Work>> callWithin(std::chrono::milliseconds timeout,
                                                     const std::function<void()>& checkpoint,
                                                     Work work) {
  constexpr std::chrono::milliseconds checkpointInterval{100};
  struct InProgress {
    InProgress() { ++callsInProgress; }
    InProgress(const InProgress&) = delete;
    InProgress& operator=(const InProgress&) = delete;
    ~InProgress() { --callsInProgress; }
  };
  const Deadline deadline(timeout);
  auto counted = std::make_shared<InProgress>();
  std::packaged_task<std::invoke_result_t<Work>()> task(
      [work = std::move(work), counted = std::move(counted)]() mutable {
        const auto untilResult = std::move(counted);  // ends before the result is there
        return work();
      });
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  while (result.wait_for(std::min(checkpointInterval, deadline.left())) !=
         std::future_status::ready) {
    if (checkpoint) {
      checkpoint();
    }
    if (deadline.over()) {
      return std::nullopt;
    }
  }
  return result.get();
}

}  // namespace vfpass
