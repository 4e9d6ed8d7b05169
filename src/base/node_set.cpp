#include "vfpass/base/node_set.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

constexpr unsigned highest = 1023;

std::optional<unsigned> parseNode(std::string_view text) {
  const auto value = parseNumber(trim(text));
  return value && *value <= highest ? std::optional(static_cast<unsigned>(*value)) : std::nullopt;
}

bool addPart(std::string_view part, std::set<unsigned>& nodes) {
  if (part.starts_with('^')) {
    const auto node = parseNode(part.substr(1));
    return node && nodes.erase(*node) == 1;
  }
  const auto dash = part.find('-');
  const auto first = parseNode(part.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parseNode(part.substr(dash + 1));
  if (!first || !last || *last < *first) {
    return false;
  }
  for (unsigned node = *first; node <= *last; ++node) {
    nodes.insert(node);
  }
  return true;
}

}  // namespace

std::optional<std::set<unsigned>> parseNodeSet(std::string_view text) {
  std::set<unsigned> nodes;
  text = trim(text);
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    if (!addPart(trim(text.substr(0, end)), nodes)) {
      return std::nullopt;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return nodes;
}

std::set<unsigned> cpusInMask(std::string_view mask) {
  std::set<unsigned> cpus;
  unsigned cpu = 0;
  for (auto digit = mask.rbegin(); digit != mask.rend(); ++digit) {
    if (*digit == ',') {
      continue;
    }
    const auto value = parseNumber(std::string_view(&*digit, 1), 16).value_or(0);
    for (unsigned bit = 0; bit < 4 && cpu <= highest; ++bit, ++cpu) {
      if ((value >> bit & 1U) != 0) {
        cpus.insert(cpu);
      }
    }
  }
  return cpus;
}

std::string formatNodeSet(const std::set<unsigned>& nodes) {
  std::string text;
  for (auto node = nodes.begin(); node != nodes.end();) {
    const unsigned first = *node;
    unsigned last = first;
    while (++node != nodes.end() && *node == last + 1) {
      last = *node;
    }
    text += (text.empty() ? "" : ",") + std::to_string(first);
    text += last == first ? "" : "-" + std::to_string(last);
  }
  return text;
}

}  // namespace vfpass
