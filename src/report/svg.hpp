#pragma once

#include <iosfwd>
#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace vfpass::report {

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
