#include "read_tools.hpp"

#include <charconv>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// Larger rates and latencies are implausible.
constexpr double largestFigure = 1e6;

std::optional<double> number(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && end == word.data() + word.size();
  return whole && std::isfinite(value) && value >= 0 && value < largestFigure ? std::optional(value)
                                                                              : std::nullopt;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) {
    found.push_back(word);
  }
  return found;
}

// The words of the line after the last header that has this column.
std::vector<std::string> resultLine(std::string_view text, std::string_view column) {
  std::vector<std::string> found;
  bool header = false;
  for (const std::string& line : splitLines(text)) {
    if (header) {
      found = words(line);
    }
    header = trim(line).starts_with("#bytes") && line.find(column) != std::string::npos;
  }
  return found;
}

// Whether the line has this number of columns and is for messages of this size.
bool isResultFor(const std::vector<std::string>& line, std::size_t columns, std::uint64_t bytes) {
  return line.size() == columns && parseNumber(line.front()) == bytes;
}

// The value after a label such as `# Avg bus bandwidth    : `.
std::string valueAfter(std::string_view text, std::string_view label) {
  for (const std::string& line : splitLines(text)) {
    const auto colon = line.find(':');
    if (line.starts_with(label) && colon != std::string::npos) {
      return std::string(trim(line.substr(colon + 1)));
    }
  }
  return "";
}

}  // namespace

std::optional<double> readPerftestBandwidth(std::string_view text, std::uint64_t bytes) {
  // bytes, iterations, peak, average, messages per second
  const auto line = resultLine(text, "BW average[Gb/sec]");
  if (!isResultFor(line, 5, bytes)) {
    return std::nullopt;
  }
  const auto average = number(line[3]);
  return average && *average > 0 ? average : std::nullopt;
}

std::optional<ToolLatency> readPerftestLatency(std::string_view text, std::uint64_t bytes) {
  // bytes, iterations, minimum, maximum, typical, average, deviation, 99 %, 99.9 %
  const auto line = resultLine(text, "t_typical[usec]");
  if (!isResultFor(line, 9, bytes)) {
    return std::nullopt;
  }
  const auto typical = number(line[4]);
  const auto tail = number(line[7]);
  if (!typical || !tail || *typical <= 0) {
    return std::nullopt;
  }
  return ToolLatency{*typical, *tail};
}

std::optional<AllReduce> readAllReduce(std::string_view text) {
  const auto bus = number(valueAfter(text, "# Avg bus bandwidth"));
  const auto wrong = words(valueAfter(text, "# Out of bounds values"));
  if (!bus || wrong.size() != 2) {
    return std::nullopt;
  }
  return AllReduce{*bus, wrong[0] == "0" && wrong[1] == "OK"};
}

}  // namespace vfpass::verify
