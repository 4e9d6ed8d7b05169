#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

#include "worker/wire.hpp"

namespace vfpass::crash {

/// How many schedules were run, and how they ended.
struct Findings {
  std::unordered_set<std::uint64_t> traces;  ///< of orders that differ
  std::map<std::string, long> counts;        ///< of what happened in them
  long runs = 0;
  long steps = 0;
  long violations = 0;

  void add(const Findings& other);
  void print() const;
};

/// For another process of the same program.
Message toMessage(const Findings& findings);
Findings findingsIn(const Message& message);

}  // namespace vfpass::crash
