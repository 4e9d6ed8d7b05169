#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/message_check.hpp"

namespace vfpass {
class JsonReader;
}

namespace vfpass::probe {

enum class Operation { write, read, send };

/// One measurement, the same on both sides.
struct Settings {
  Operation operation = Operation::write;
  bool latency = false;  ///< one outstanding message at a time; always so for `send`
  std::uint64_t bytes = std::uint64_t{64} << 10U;  ///< of one message, 2 bytes to 16 MiB
  std::uint64_t iterations = 5000;                 ///< timed messages, of a bandwidth at least
  std::uint32_t minimumMilliseconds = 500;  ///< of a bandwidth's timed transfers; 0: `iterations`
  /// After the timed passes of a bandwidth, transfer the ring again and again for this time without
  /// checks in between; 0: do not.
  std::uint32_t sustainMilliseconds = 0;
  std::uint32_t depth = 128;     ///< of the send queue
  std::uint32_t moderation = 0;  ///< messages for each completion; 0: 100 up to 8 KiB, else 1
  std::uint64_t seed = 1;
  std::uint64_t memoryLimit = std::uint64_t{64} << 20U;  ///< for each ring
  std::uint64_t alignment = 0;                           ///< of messages: bytes past a cache line
  bool check = true;  ///< without it, a run shows the cost of checks and proves nothing
  bool relaxedOrdering = false;
  bool rdmaCm = false;  ///< connect by rdma_cm, with the IP addresses of both ports
  bool initiatorOnGpu = false;
  bool targetOnGpu = false;
  Injection injection;  ///< its message number counts timed messages, from 0
};

std::string operationName(Operation operation);

/// Messages for each completion; by default as in perftest.
std::uint32_t moderationOf(const Settings& settings);

nlohmann::json toJson(const Settings& settings);

/// Reads what toJson wrote. Throws Error, also for what validate refuses.
Settings settingsFromJson(const JsonReader& json);

/// Throws Error (bad usage) for settings that cannot be run.
void validate(const Settings& settings);

/// A named set of runs.
struct Preset {
  std::string_view name;
  std::string_view purpose;
  std::vector<Settings> runs;
};

/// `quick`, `sizes` (every power of two), `latency`, and `published`: the 10,000 writes of 10 MB.
std::vector<Preset> presets();

}  // namespace vfpass::probe
