#include "event_loop.hpp"

#include <libvirt/libvirt.h>

#include <algorithm>
#include <mutex>

#include "libvirt_error.hpp"

namespace vfpass::libvirt {
namespace {

using Clock = std::chrono::steady_clock;

// libvirt's loop goes on after a signal, which `done` may look for.
constexpr std::chrono::milliseconds pollInterval{250};

// Only wakes the loop; the waiter checks the clock.
void onTimer(int /*timer*/, void* /*opaque*/) {}

class WakeUp {
 public:
  explicit WakeUp(std::chrono::milliseconds after)
      : timer_(virEventAddTimeout(static_cast<int>(after.count()), onTimer, nullptr, nullptr)) {
    if (timer_ < 0) {
      throw callError("cannot wait for libvirt's events", lastFailure());
    }
  }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;
  ~WakeUp() { virEventRemoveTimeout(timer_); }

 private:
  int timer_;
};

}  // namespace

void registerEventLoop() {
  static std::once_flag once;
  std::call_once(once, [] { virEventRegisterDefaultImpl(); });
}

bool runEventsUntil(const std::function<bool()>& done, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (!done()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return false;
    }
    const WakeUp wakeUp(std::min(left, pollInterval));
    if (virEventRunDefaultImpl() < 0) {
      throw callError("cannot wait for libvirt's events", lastFailure());
    }
  }
  return true;
}

}  // namespace vfpass::libvirt
