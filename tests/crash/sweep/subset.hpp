#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "sweep/report.hpp"

namespace vfpass::crash {

/// Runs random points of random experiments on random scenarios until the time is over. The same
/// seed gives the same sequence.
void runSubset(std::uint32_t seed, std::chrono::seconds duration,
               const std::filesystem::path& scratch, Report& report);

}  // namespace vfpass::crash
