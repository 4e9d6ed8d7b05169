#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace vfpass::probe {

/// The processor's own counter; 0 on other architectures.
inline std::uint64_t processorTicks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

inline std::uint64_t kernelNanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

inline double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Length of a tick of `counter` in nanoseconds of `clock`, measured for about 10 ms; nullopt if it
/// does not run evenly, as on machines without one counter for all processors.
std::optional<double> nanosecondsPerTick(const std::function<std::uint64_t()>& counter,
                                         const std::function<std::uint64_t()>& clock);

/// Takes times by the processor's counter, as perftest does, if it runs evenly, because reading the
/// kernel's clock adds to a short latency. Otherwise uses that clock.
class TickClock {
 public:
  /// The first instance in a process measures the counter.
  TickClock();

  [[nodiscard]] std::uint64_t now() const {
    return usesCounter_ ? processorTicks() : kernelNanoseconds();
  }
  [[nodiscard]] double secondsBetween(std::uint64_t begin, std::uint64_t end) const {
    // Counters of two processors can differ by a few ticks.
    return end < begin ? 0 : static_cast<double>(end - begin) * secondsPerTick_;
  }

 private:
  bool usesCounter_ = false;
  double secondsPerTick_ = 1e-9;
};

}  // namespace vfpass::probe
