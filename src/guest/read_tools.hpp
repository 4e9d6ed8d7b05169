#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vfpass::guest {

/// The last result line of perftest's `ib_write_bw` or `ib_read_bw` with --report_gbits: the
/// average in Gb/s. nullopt unless it is of messages of `bytes` and greater than zero (perftest
/// prints 0.000000 where a clock misled it). Takes the text for hostile.
std::optional<double> readPerftestBandwidth(std::string_view text, std::uint64_t bytes);

struct ToolLatency {
  double typicalMicroseconds = 0;  ///< the median
  double tailMicroseconds = 0;     ///< 99th percentile
};

/// The same of `ib_write_lat`, `ib_read_lat`.
std::optional<ToolLatency> readPerftestLatency(std::string_view text, std::uint64_t bytes);

struct AllReduce {
  double busGigabytesPerSecond = 0;  ///< average over all sizes
  bool right = false;                ///< nccl-tests found no wrong value
};

/// What `all_reduce_perf` of nccl-tests says at its end.
std::optional<AllReduce> readAllReduce(std::string_view text);

}  // namespace vfpass::guest
