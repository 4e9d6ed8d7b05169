#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace vfpass::report {

/// Output format of a report.
struct Style {
  bool json = false;
  bool color = false;
};

/// Incremented with every change of the JSON output that may break a reader.
inline constexpr int schemaVersion = 1;

/// The meaning of a text, shown by colour if the style allows it, but never by colour alone.
enum class Tint { none, heading, good, bad, warning, muted };

/// Makes `text` printable, and coloured if the style says so.
std::string tinted(const std::string& text, Tint tint, const Style& style);

struct Cell {
  std::string text;
  Tint tint = Tint::none;
};

/// Text in aligned columns. Cells may contain untrusted text: they are made printable here.
class Table {
 public:
  explicit Table(std::vector<std::string> header);

  /// A row may be shorter than the header, but not longer.
  void add(std::vector<Cell> row);

  /// Two spaces between columns, none at the end of a line. Writes the header even without rows.
  void write(std::ostream& out, const Style& style) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace vfpass::report
