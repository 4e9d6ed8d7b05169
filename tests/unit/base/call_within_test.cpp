#include "vfpass/base/call_within.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace vfpass {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds soon{60000};

/// A call that ends only when the test lets it.
class HangingCall {
 public:
  [[nodiscard]] auto work() const {
    return [released = released_] {
      released.wait();
      return 1;
    };
  }
  void release() {
    release_.set_value();
    while (callsInProgress != 0) {
      std::this_thread::yield();
    }
  }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

TEST(CallWithin, ReturnsResultAndPassesOnExceptions) {
  EXPECT_EQ(callWithin(soon, {}, [] { return std::string("reply"); }), "reply");
  EXPECT_THROW(callWithin(soon, {}, []() -> int { throw std::runtime_error("refused"); }),
               std::runtime_error);
  EXPECT_EQ(callsInProgress, 0);
}

TEST(CallWithin, AbandonsCallAtTheTimeout) {
  HangingCall call;
  EXPECT_EQ(callWithin(milliseconds(50), {}, call.work()), std::nullopt);
  EXPECT_EQ(callsInProgress, 1) << "its objects are still in use";
  call.release();
}

TEST(CallWithin, CheckpointEndsTheWait) {
  HangingCall call;
  int calls = 0;
  const auto stop = [&calls] {
    if (++calls == 2) {
      throw std::runtime_error("stopped");
    }
  };
  EXPECT_THROW(callWithin(soon, stop, call.work()), std::runtime_error);
  EXPECT_EQ(callsInProgress, 1);
  call.release();
}

}  // namespace
}  // namespace vfpass
