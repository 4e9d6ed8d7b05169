#include "vfpass/report/table.hpp"

#include <algorithm>
#include <functional>
#include <ostream>
#include <string_view>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

// Not libsmartcols: in the locale `C` it writes `é` as `\xc3\xa9`.
constexpr std::size_t columnGap = 2;

// Width on a terminal: counts every byte of UTF-8 except continuation bytes. Wide characters are
// rare in names of devices and domains; they only shift the text to their right.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, std::not_fn(isContinuation)));
}

std::string_view colorCode(Tint tint) {
  switch (tint) {
    case Tint::heading:
      return "\x1b[1m";
    case Tint::good:
      return "\x1b[32m";
    case Tint::bad:
      return "\x1b[31m";
    case Tint::warning:
      return "\x1b[33m";
    case Tint::muted:
      return "\x1b[2m";
    case Tint::none:
      break;
  }
  return "";
}

std::vector<std::size_t> columnWidths(const std::vector<std::vector<Cell>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width(row[column].text));
    }
  }
  return widths;
}

}  // namespace

std::string tinted(const std::string& text, Tint tint, const Style& style) {
  const std::string safe = printable(text);
  if (!style.color || tint == Tint::none) {
    return safe;
  }
  return std::string(colorCode(tint)) + safe + "\x1b[0m";
}

Table::Table(std::vector<std::string> header) {
  std::vector<Cell> cells;
  for (auto& name : header) {
    cells.push_back({std::move(name), Tint::heading});
  }
  rows_.push_back(std::move(cells));
}

void Table::add(std::vector<Cell> row) {
  for (auto& cell : row) {
    cell.text = printable(cell.text);
  }
  row.resize(std::min(row.size(), rows_.front().size()));
  rows_.push_back(std::move(row));
}

void Table::write(std::ostream& out, const Style& style) const {
  const auto widths = columnWidths(rows_);
  for (const auto& row : rows_) {
    std::size_t pending = 0;  // spaces to write if more text follows
    for (std::size_t column = 0; column < row.size(); ++column) {
      const Cell& cell = row[column];
      if (!cell.text.empty()) {
        out << std::string(pending, ' ') << tinted(cell.text, cell.tint, style);
        pending = 0;
      }
      pending += widths[column] - width(cell.text) + columnGap;
    }
    out << '\n';
  }
}

}  // namespace vfpass::report
