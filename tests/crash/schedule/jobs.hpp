#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "schedule/findings.hpp"

namespace vfpass::crash {

/// One of several processes that share the schedules among them.
struct Job {
  std::filesystem::path scratch;  ///< a directory of its own
  unsigned number = 0;            ///< from 0
};

/// Calls `work` in each of so many processes, which have a simulated host, a clock and an output of
/// their own, and adds up what they find. Throws if one of them fails.
Findings runJobs(unsigned jobs, const std::filesystem::path& scratch,
                 const std::function<Findings(const Job&)>& work);

/// Prints the text as a whole, also while other jobs print.
void printWhole(const std::string& text);

}  // namespace vfpass::crash
