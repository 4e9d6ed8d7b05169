#include <gmock/gmock.h>

#include <chrono>
#include <sstream>

#include "command_session.hpp"

namespace vfpass::commands {
namespace {

using testing::HasSubstr;

TEST(LockProgress, EachWaitCountsItsOwnSeconds) {
  report::ProgressLine::Clock::time_point now;
  std::ostringstream out;
  report::ProgressLine line(out, true, 120, [&now] { return now; });
  const LockProgress progress(line, "VM train0");
  const state::LockWait wait{"/run/vfpass/domain", "process 123 (vfpass detach train0)"};
  line.show("rail0");
  now += std::chrono::seconds(30);
  state::LockWaitObserver::tell(&wait);
  EXPECT_THAT(out.str(), HasSubstr("waiting for the lock of VM train0, held by process 123 "
                                   "(vfpass detach train0), 0 s"));
  state::LockWaitObserver::tell(nullptr);
  out.str("");
  line.tick();
  EXPECT_EQ(out.str(), "") << "the wait is over";
  now += std::chrono::seconds(5);
  state::LockWaitObserver::tell(&wait);
  EXPECT_THAT(out.str(), HasSubstr("(vfpass detach train0), 0 s"));
  state::LockWaitObserver::tell(nullptr);
}

}  // namespace
}  // namespace vfpass::commands
