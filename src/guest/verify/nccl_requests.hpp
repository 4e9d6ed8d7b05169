#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "judge_nccl.hpp"

namespace vfpass::verify {

inline constexpr const char* allGather = "all-gather";
inline constexpr std::array<const char*, 2> collectives{"all-reduce", allGather};

/// `10 GiB`. Sizes are powers of two, or multiples of them.
std::string wholeUnitsText(std::uint64_t bytes);

/// `all-gather of 10 GiB`
std::string requestText(const NcclRun& run);

std::string listOf(const std::set<std::string>& words);

/// nullptr: the report has none.
const NcclRun* runOf(const NcclReport& report, const std::string& operation, std::uint64_t bytes);
const NcclOmission* omissionOf(const NcclReport& report, const NcclRun& request);

/// Empty: the report has only operations and sizes that were asked for, each once. So sizes are
/// plausible, and there are few items, from here on.
std::string requestProblem(const NcclOutcome& outcome, const NcclReport& report);

/// Each operation and size that was asked for, without figures.
std::vector<NcclRun> requestsOf(const NcclOutcome& outcome);

/// The member that ran it; nullptr: none.
const NcclMember* anyThatRan(const NcclOutcome& outcome, const NcclRun& request);

}  // namespace vfpass::verify
