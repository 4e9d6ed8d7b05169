#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vfpass::probe {

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

}  // namespace vfpass::probe
