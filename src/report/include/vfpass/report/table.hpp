#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// What a piece of text means; shown by colour where the style allows it, never by colour alone.
enum class Tint { none, heading, good, bad, warning, muted };

/// `text` made printable, and coloured when the style says so.
std::string tinted(const std::string& text, Tint tint, const Style& style);

struct Cell {
  std::string text;
  Tint tint = Tint::none;
};

/// Text in aligned columns. Cells may hold anything from outside: they are made printable here.
class Table {
 public:
  explicit Table(std::vector<std::string> header);

  /// Rows may be shorter than the header, not longer.
  void add(std::vector<Cell> row);

  /// Two spaces between columns, none at the end of a line; the header stands there even when no
  /// row follows.
  void write(std::ostream& out, const Style& style) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace vfpass::report
