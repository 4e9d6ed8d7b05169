#include "concurrent_runs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

using Checkpoint = agent::Agent::Checkpoint;

TEST(ConcurrentTasks, RunsAsManyAtTheSameTimeAsItHasWorkers) {
  std::latch all(3);
  const Task task = [&](const Checkpoint&) { all.arrive_and_wait(); };
  runConcurrently({task, task, task}, 3, [] {});
  EXPECT_TRUE(all.try_wait());
}

TEST(ConcurrentTasks, RunsNoMoreThanWorkers) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> ran = 0;
  const Task task = [&](const Checkpoint&) {
    most = std::max(most.load(), ++running);
    std::this_thread::yield();
    --running;
    ++ran;
  };
  runConcurrently({task, task, task, task, task}, 2, [] {});
  EXPECT_EQ(ran, 5);
  EXPECT_LE(most, 2);
}

TEST(ConcurrentTasks, StopEndsRunningTasksOnceAndStartsNoOthers) {
  std::atomic<int> stopped = 0;
  std::atomic<bool> cleanedUp = false;
  const Task endless = [&](const Checkpoint& checkpoint) {
    try {
      for (;;) {
        checkpoint();
        std::this_thread::yield();
      }
    } catch (const Error&) {
      ++stopped;
      checkpoint();  // the cleanup uses the same agent
      cleanedUp = true;
    }
  };
  bool never = false;
  const Task later = [&](const Checkpoint&) { never = true; };
  EXPECT_THROW(runConcurrently({endless, later}, 1, [] { throw std::runtime_error("SIGINT"); }),
               std::runtime_error);
  EXPECT_EQ(stopped, 1);
  EXPECT_TRUE(cleanedUp);
  EXPECT_FALSE(never);
}

}  // namespace
}  // namespace vfpass::verify
