#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "sweep/report.hpp"

namespace vfpass::crash {

/// Runs so many random points of random experiments on random scenarios, or fewer if the time is
/// over before. The same seed gives the same sequence.
void runSubset(std::uint32_t seed, long points, std::chrono::seconds duration,
               const std::filesystem::path& scratch, Report& report);

}  // namespace vfpass::crash
