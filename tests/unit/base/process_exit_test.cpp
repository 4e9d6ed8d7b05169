#include "vfpass/base/deadline.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vfpass {
namespace {

using std::chrono::milliseconds;

// A process that exits when it is told to.
class Sleeper {
 public:
  Sleeper() : id_(::fork()) {
    if (id_ == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    end();
    ::waitpid(id_, nullptr, 0);
  }
  void end() const { ::kill(id_, SIGKILL); }
  [[nodiscard]] pid_t id() const { return id_; }

 private:
  pid_t id_;
};

TEST(WaitForExit, EndsWithTheFirstProcessAndReapsNone) {
  const Sleeper first;
  const Sleeper second;
  second.end();
  EXPECT_TRUE(waitForExit({first.id(), second.id()}, Deadline(milliseconds(60'000))));
  EXPECT_EQ(::waitpid(second.id(), nullptr, 0), second.id());
}

TEST(WaitForExit, EndsWithTheDeadline) {
  const Sleeper process;
  EXPECT_FALSE(waitForExit({process.id()}, Deadline(milliseconds(50))));
  EXPECT_FALSE(waitForExit({}, Deadline(milliseconds(1))));
}

TEST(WaitForExit, EndsAtOnceForProcessThatDoesNotExist) {
  const Sleeper process;
  constexpr pid_t noProcess = 4'194'305;  // above PID_MAX_LIMIT
  EXPECT_TRUE(waitForExit({process.id(), noProcess}, Deadline(milliseconds(60'000))));
}

}  // namespace
}  // namespace vfpass
