#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vfpass::verify {

/// The average in Gb/s from the last result line of `ib_write_bw` or `ib_read_bw` with
/// --report_gbits. nullopt unless the line is for messages of `bytes` and the average is greater
/// than zero (perftest prints 0.000000 when its clock is unreliable). The text is untrusted.
std::optional<double> readPerftestBandwidth(std::string_view text, std::uint64_t bytes);

struct ToolLatency {
  double typicalMicroseconds = 0;  ///< the median
  double tailMicroseconds = 0;     ///< 99th percentile
};

/// The same for `ib_write_lat` and `ib_read_lat`.
std::optional<ToolLatency> readPerftestLatency(std::string_view text, std::uint64_t bytes);

struct AllReduce {
  double busGigabytesPerSecond = 0;  ///< average over all sizes
  bool right = false;                ///< nccl-tests found no wrong value
};

/// The summary that `all_reduce_perf` of nccl-tests prints at its end.
std::optional<AllReduce> readAllReduce(std::string_view text);

}  // namespace vfpass::verify
