#include "vfpass/base/unified_diff.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

namespace vfpass {
namespace {

using Lines = std::vector<std::string_view>;

// dtl (libdtl-dev) has no such limit: two texts of 80000 different lines take it seconds.
constexpr int changeLimit = 2000;

std::size_t index(int number) { return static_cast<std::size_t>(number); }

// Myers' greedy search. furthest_[k] is the furthest `x` (line of `before`) that a path with d
// changes reaches on diagonal k = x - y. One copy per d is kept for backtracking.
class ShortestEdit {
 public:
  ShortestEdit(const Lines& before, const Lines& after)
      : before_(before),
        after_(after),
        width_(static_cast<int>(before.size())),
        height_(static_cast<int>(after.size())) {}

  std::optional<std::vector<DiffLine>> find() {
    const int limit = std::min(width_ + height_, changeLimit);
    furthest_.assign(index(2 * limit + 3), 0);
    middle_ = limit + 1;
    for (int changes = 0; changes <= limit; ++changes) {
      history_.emplace_back(furthest_.begin() + middle_ - changes - 1,
                            furthest_.begin() + middle_ + changes + 2);
      if (extend(changes)) {
        return walkBack(changes);
      }
    }
    return std::nullopt;
  }

 private:
  int& furthest(int diagonal) { return furthest_[index(middle_ + diagonal)]; }

  // True when the step to `diagonal` inserts a line of `after` rather than deleting one of
  // `before`.
  static bool inserts(int diagonal, int changes, int fromBelow, int fromAbove) {
    return diagonal == -changes || (diagonal != changes && fromBelow < fromAbove);
  }

  bool extend(int changes) {
    for (int diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const int below = furthest(diagonal - 1);
      const int above = furthest(diagonal + 1);
      int x = inserts(diagonal, changes, below, above) ? above : below + 1;
      while (same(x, x - diagonal)) {
        ++x;
      }
      furthest(diagonal) = x;
      if (x >= width_ && x - diagonal >= height_) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool same(int x, int y) const {
    return x >= 0 && y >= 0 && x < width_ && y < height_ && line(before_, x) == line(after_, y);
  }

  static std::string_view line(const Lines& lines, int at) { return lines[index(at)]; }

  [[nodiscard]] std::vector<DiffLine> walkBack(int changes) const {
    std::vector<DiffLine> reversed;
    int x = width_;
    int y = height_;
    for (; changes > 0; --changes) {
      const auto& reached = history_[index(changes)];
      const auto at = [&](int diagonal) { return reached[index(diagonal + changes + 1)]; };
      const int diagonal = x - y;
      const bool inserted = inserts(diagonal, changes, at(diagonal - 1), at(diagonal + 1));
      const int previousX = inserted ? at(diagonal + 1) : at(diagonal - 1);
      const int stop = inserted ? previousX : previousX + 1;
      while (x > stop) {
        reversed.push_back({LineOrigin::both, line(before_, --x)});
        --y;
      }
      reversed.push_back(inserted ? DiffLine{LineOrigin::after, line(after_, --y)}
                                  : DiffLine{LineOrigin::before, line(before_, --x)});
    }
    while (x > 0) {
      reversed.push_back({LineOrigin::both, line(before_, --x)});
    }
    return {reversed.rbegin(), reversed.rend()};
  }

  const Lines& before_;
  const Lines& after_;
  int width_;
  int height_;
  int middle_ = 0;
  std::vector<int> furthest_;
  std::vector<std::vector<int>> history_;
};

std::vector<DiffLine> replaceAll(const Lines& before, const Lines& after) {
  std::vector<DiffLine> lines;
  for (const auto text : before) {
    lines.push_back({LineOrigin::before, text});
  }
  for (const auto text : after) {
    lines.push_back({LineOrigin::after, text});
  }
  return lines;
}

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

std::vector<DiffLine> compareLines(const Lines& before, const Lines& after) {
  // Remove the common head and tail first, so that the limit applies to the changed part only.
  const auto head = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  const auto tail = std::mismatch(before.rbegin(), std::make_reverse_iterator(head.first),
                                  after.rbegin(), std::make_reverse_iterator(head.second));
  const Lines oldPart(head.first, tail.first.base());
  const Lines newPart(head.second, tail.second.base());

  std::vector<DiffLine> lines;
  const auto keep = [&lines](auto begin, auto end) {
    std::for_each(begin, end, [&lines](std::string_view text) {
      lines.push_back({LineOrigin::both, text});
    });
  };
  keep(before.begin(), head.first);
  const auto found = ShortestEdit(oldPart, newPart).find();
  const auto changed = found ? *found : replaceAll(oldPart, newPart);
  lines.insert(lines.end(), changed.begin(), changed.end());
  keep(tail.first.base(), before.end());
  return lines;
}

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
