#pragma once

#include <map>
#include <string>

namespace vfpass::crash {

/// Where a violation was found, and the command that repeats it.
struct Place {
  std::string description;
  std::string command;
};

/// Counts of what was tried and how it ended. Prints each violation when it is found.
class Report {
 public:
  void count(const std::string& what) { ++counts_[what]; }
  void violation(const std::string& kind, const Place& place, const std::string& detail);

  [[nodiscard]] long violations() const { return violations_; }
  void print() const;

 private:
  std::map<std::string, long> counts_;
  long violations_ = 0;
};

/// A command's exit status and output, indented.
std::string commandText(const std::string& command, int code, const std::string& output);

}  // namespace vfpass::crash
