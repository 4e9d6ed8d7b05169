#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "fault.hpp"

namespace vfpass::probe {

enum class Operation { write, read, send };

/// One measurement, the same on both sides.
struct Settings {
  Operation operation = Operation::write;
  bool latency = false;  ///< one message under way at a time; `send` is always so
  std::uint64_t bytes = std::uint64_t{64} << 10U;  ///< of one message, 2 to 16 MiB
  std::uint64_t iterations = 5000;                 ///< timed messages
  std::uint32_t depth = 128;                       ///< of the send queue
  std::uint32_t moderation = 0;  ///< a completion for every so many; 0: 100 up to 8 KiB, else 1
  std::uint64_t seed = 1;
  std::uint64_t memoryLimit = std::uint64_t{64} << 20U;  ///< for each ring
  std::uint64_t alignment = 0;                           ///< of messages, bytes past a cache line
  bool check = true;  ///< off measures what checking costs, and proves nothing
  bool relaxedOrdering = false;
  bool initiatorOnGpu = false;
  bool targetOnGpu = false;
  Injection injection;  ///< its message counts timed ones, from 0
};

std::string operationName(Operation operation);

/// As perftest chooses when nobody does.
std::uint32_t moderationOf(const Settings& settings);

nlohmann::json toJson(const Settings& settings);

/// Reads what toJson wrote, and takes nothing that validate refuses. Throws Error.
Settings settingsFromJson(const nlohmann::json& json);

/// Throws Error (bad usage) for what cannot be run.
void validate(const Settings& settings);

/// Names of the presets, with what they are for.
struct Preset {
  std::string_view name;
  std::string_view purpose;
  std::vector<Settings> runs;
};

/// `quick`, `sizes` (every power of two), `latency`, and `published`: the 10,000 writes of 10 MB.
std::vector<Preset> presets();

}  // namespace vfpass::probe
