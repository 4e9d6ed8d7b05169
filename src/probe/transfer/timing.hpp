#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace vfpass::probe {

// Measuring: the clock, how long it goes on, and figures of what it took.

/// The processor's own counter; 0 on other architectures.
inline std::uint64_t processorTicks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  // Without the barrier the processor may read the counter before the work that it is to time, as
  // the kernel's own reads know (arch/arm64/include/asm/arch_timer.h). perftest does the same.
  asm volatile("isb" : : : "memory");
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

/// What limits a measurement.
struct PaceLimits {
  std::uint64_t slots = 1;       ///< of the ring: the most messages of one pass
  std::uint64_t depth = 1;       ///< of the send queue
  std::uint64_t iterations = 1;  ///< timed messages at least
  /// Timed passes continue for so long; 0: exactly `iterations` messages.
  double minimumSeconds = 0;
  /// Passes beyond `iterations` have to end within this time, including filling and checking.
  double limitSeconds = 0;
};

/// Decides how many messages each pass over the ring has and when a measurement ends. It has no
/// clock: the caller reports every pass.
class Pace {
 public:
  explicit Pace(const PaceLimits& limits) : limits_(limits) {}

  /// Messages of the next warm-up pass, 0: none. The first pass has at most a send queue's length;
  /// the second one, over the whole ring, is left out if it would take longer than the limit.
  [[nodiscard]] std::uint64_t nextWarmUp() const;
  /// Messages of the next timed pass, 0: the measurement is complete.
  [[nodiscard]] std::uint64_t nextPass() const;

  /// Reports a pass: the seconds of its transfers only, and those including its preparation and
  /// check.
  void warmedUp(std::uint64_t messages, double wholeSeconds);
  void passed(std::uint64_t messages, double timedSeconds, double wholeSeconds);

  /// Slots that the warm-up has used.
  [[nodiscard]] std::uint64_t warmSlots() const { return warmSlots_; }
  /// Timed messages.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// Timed seconds of each pass over the whole ring.
  [[nodiscard]] const std::vector<double>& passes() const { return passes_; }
  /// Whether the minimum was reached, rather than the limit.
  [[nodiscard]] bool reachedMinimum() const;

 private:
  PaceLimits limits_;
  std::uint64_t warmUps_ = 0;
  std::uint64_t warmSlots_ = 0;
  double warmUpSeconds_ = 0;
  std::uint64_t messages_ = 0;
  std::vector<double> passes_;
  double wholeSeconds_ = 0;  ///< of all passes
  double fastestPass_ = 0;   ///< transfers only
  double slowestPass_ = 0;   ///< including preparation and check
};

/// The limit of one of `runsLeft` measurements: at most 20 seconds, and together at most half of
/// the time left, so that the last pass and the exchange of the results fit in.
double paceLimit(double secondsLeft, std::size_t runsLeft);

/// Figures of one series.
struct Statistics {
  double minimum = 0;
  double median = 0;  ///< of an even number: the mean of the middle two
  double mean = 0;
  double percentile99 = 0;   ///< nearest rank
  double percentile999 = 0;  ///< nearest rank
  double maximum = 0;
};

/// All zero for an empty series.
Statistics summarize(std::vector<double> values);

/// `{minimum, median, mean, p99, p99_9, maximum}`, each divided by `unit`.
nlohmann::json toJson(const Statistics& statistics, double unit);

}  // namespace vfpass::probe
