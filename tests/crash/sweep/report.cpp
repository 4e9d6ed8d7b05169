#include "sweep/report.hpp"

#include <iostream>
#include <sstream>

namespace vfpass::crash {

void Report::violation(const std::string& kind, const Place& place, const std::string& detail) {
  ++violations_;
  count("VIOLATION " + kind);
  std::cout << "VIOLATION " << kind << ": " << place.description << '\n'
            << detail << "    repeat: " << place.command << '\n'
            << std::flush;
}

void Report::print() const {
  for (const auto& [what, number] : counts_) {
    std::cout << number << "  " << what << '\n';
  }
  std::cout << violations_ << "  violations\n";
}

std::string commandText(const std::string& command, int code, const std::string& output) {
  std::string text = "    " + command + ": " +
                     (code < 0 ? "killed" : "exit status " + std::to_string(code)) + '\n';
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    text += "      | " + line.substr(0, 300) + '\n';
  }
  return text;
}

}  // namespace vfpass::crash
