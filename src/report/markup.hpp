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

  /// Returns the row; its cells are added with appendElement(row, "td", ...).
  pugi::xml_node addRow();

 private:
  pugi::xml_node body_;
};

}  // namespace vfpass::report
