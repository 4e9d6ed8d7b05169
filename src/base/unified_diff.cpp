#include "vfpass/base/unified_diff.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "line_diff.hpp"

namespace vfpass {
namespace {

constexpr std::size_t contextLines = 3;

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Hunk {
  std::size_t begin = 0;  // indices of diff lines
  std::size_t end = 0;
};

// Changes closer than twice the context share a hunk.
std::vector<Hunk> findHunks(const std::vector<DiffLine>& lines) {
  std::vector<Hunk> hunks;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].origin == LineOrigin::both) {
      continue;
    }
    const auto begin = at - std::min(at, contextLines);
    const auto end = std::min(lines.size(), at + 1 + contextLines);
    if (!hunks.empty() && begin <= hunks.back().end) {
      hunks.back().end = end;
    } else {
      hunks.push_back({begin, end});
    }
  }
  return hunks;
}

std::size_t countOf(const std::vector<DiffLine>& lines, Hunk range, LineOrigin origin) {
  std::size_t count = 0;
  for (auto at = range.begin; at < range.end; ++at) {
    count += lines[at].origin == LineOrigin::both || lines[at].origin == origin ? 1U : 0U;
  }
  return count;
}

// `12,7`: first line and number of lines; an empty range names the line before it.
// dtl (libdtl-dev) writes an empty range at the top as `1,0`, where diff(1) writes `0,0`.
std::string rangeText(const std::vector<DiffLine>& lines, Hunk hunk, LineOrigin origin) {
  const auto before = countOf(lines, {0, hunk.begin}, origin);
  const auto count = countOf(lines, hunk, origin);
  const auto first = std::to_string(count == 0 ? before : before + 1);
  return count == 1 ? first : first + "," + std::to_string(count);
}

char mark(LineOrigin origin) {
  return origin == LineOrigin::both ? ' ' : origin == LineOrigin::before ? '-' : '+';
}

}  // namespace

std::string unifiedDiff(std::string_view before, std::string_view after) {
  const auto lines = compareLines(linesOf(before), linesOf(after));
  std::ostringstream text;
  for (const auto hunk : findHunks(lines)) {
    text << "@@ -" << rangeText(lines, hunk, LineOrigin::before) << " +"
         << rangeText(lines, hunk, LineOrigin::after) << " @@\n";
    for (auto at = hunk.begin; at < hunk.end; ++at) {
      text << mark(lines[at].origin) << lines[at].text << '\n';
    }
  }
  return text.str();
}

}  // namespace vfpass
