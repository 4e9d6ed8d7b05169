#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

namespace vfpass::report {

/// Makes untrusted text safe inside an SVG element or attribute: terminal codes and bytes that are
/// not UTF-8 as in `printable`, XML special characters as entities.
std::string svgText(std::string_view text);

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

/// Writes the few SVG elements of our pictures. CSS classes are those of the embedded style sheet;
/// all text is escaped here.
class SvgWriter {
 public:
  explicit SvgWriter(std::ostream& out) : out_(out) {}

  /// `style` is our own CSS and is written unescaped.
  /// `left`: position within an enclosing picture.
  void begin(int width, int height, const std::string& title, std::string_view style, int left = 0);
  void end();
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
  std::ostream& out_;
};

}  // namespace vfpass::report
