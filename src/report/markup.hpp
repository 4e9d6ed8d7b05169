#pragma once

#include <iosfwd>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::report {

/// Untrusted text reduced to the characters that XML 1.0 allows: control characters and bytes that
/// are not UTF-8 as in `printable`, U+FFFE and U+FFFF as `?`. pugixml escapes the markup, but
/// writes control characters as references (`&#27;`) that no XML 1.0 parser accepts.
std::string xmlText(std::string_view text);

/// Appends an attribute with the `xmlText` of the value.
void appendAttribute(pugi::xml_node element, const char* name, std::string_view value);

/// Sets the content of an element to the `xmlText` of the text.
void setText(pugi::xml_node element, std::string_view text);

/// One self-contained HTML page: no script, no file of its own besides, and a content security
/// policy that allows neither. All text is escaped; it may come from guests.
class HtmlPage {
 public:
  explicit HtmlPage(const std::string& title);

  /// The content, below the page's heading.
  [[nodiscard]] pugi::xml_node content() const { return main_; }
  /// Adds `<h2>` and returns the section to add the rest to.
  pugi::xml_node addSection(const std::string& heading);
  /// Adds one of our own pictures (topology_svg.cpp): a complete SVG document.
  void addPicture(pugi::xml_node parent, const std::string& svg, const std::string& description);

  void write(std::ostream& out) const;

 private:
  std::string title_;
  pugi::xml_document document_;
  pugi::xml_node main_;
};

/// Appends an element with this text and, if it is not empty, this class.
pugi::xml_node appendElement(pugi::xml_node parent, const char* name, std::string_view text,
                             const char* cssClass = "");

/// A table with headings, where `>` begins the heading of a column of numbers; rows are added with
/// addRow().
class HtmlTable {
 public:
  HtmlTable(pugi::xml_node parent, const std::vector<std::string>& headings);
  /// Names the heading in each cell: on a narrow screen a row is a list.
  ~HtmlTable();
  HtmlTable(const HtmlTable&) = delete;
  HtmlTable& operator=(const HtmlTable&) = delete;

  /// Returns the row; its cells are added with appendElement(row, "td", ...).
  pugi::xml_node addRow();

 private:
  std::vector<std::string> headings_;
  pugi::xml_node body_;
};

/// At most `limit` characters; truncated text ends in an ellipsis.
std::string fitted(const std::string& text, std::size_t limit);

struct Point {
  int x = 0;
  int y = 0;
};

struct Rectangle {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// Appends the few SVG elements of our pictures to a document. CSS classes are those of the
/// embedded style sheet.
class SvgWriter {
 public:
  SvgWriter() = default;
  /// `parent`: the document, or the enclosing picture.
  explicit SvgWriter(pugi::xml_node parent) : current_(parent) {}

  /// `left`: position within an enclosing picture.
  void begin(int width, int height, const std::string& title, std::string_view style, int left = 0);
  void end();
  /// The innermost open element.
  [[nodiscard]] pugi::xml_node current() const { return current_; }
  void openGroup(const std::string& tooltip);
  void closeGroup();
  /// `fill`: a colour that overrides the class.
  void rectangle(const Rectangle& place, int radius, std::string_view cssClass,
                 std::string_view fill = {});
  void text(const Point& place, std::string_view cssClass, const std::string& content,
            std::string_view fill = {});
  void circle(const Point& center, int radius, std::string_view fill);
  /// A curve with horizontal ends.
  void curve(const Point& from, const Point& to, std::string_view cssClass,
             std::string_view stroke);

 private:
  pugi::xml_node current_;
};

/// Writes a picture, one element per line and without an XML declaration, so that it can also be
/// pasted into HTML.
void writeSvg(std::ostream& out, const pugi::xml_document& picture);

}  // namespace vfpass::report
