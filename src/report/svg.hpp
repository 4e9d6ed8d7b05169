#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

namespace vfpass::report {

/// Text from outside made safe for the inside of an SVG element or attribute: terminal codes and
/// bytes that are not UTF-8 as `printable` shows them, XML's own characters as entities.
std::string svgText(std::string_view text);

/// At most `limit` characters; what is cut ends in an ellipsis.
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

/// The few SVG elements that a picture here is made of. Classes are those of the style sheet that
/// the picture carries; every text is escaped here.
class SvgWriter {
 public:
  explicit SvgWriter(std::ostream& out) : out_(out) {}

  /// `style` is CSS of our own and goes in as it is.
  /// `left`: where the picture begins within another one.
  void begin(int width, int height, const std::string& title, std::string_view style, int left = 0);
  void end();
  void openGroup(const std::string& tooltip);
  void closeGroup();
  /// `fill`: a colour instead of the class's.
  void rectangle(const Rectangle& place, int radius, std::string_view cssClass,
                 std::string_view fill = {});
  void text(const Point& place, std::string_view cssClass, const std::string& content,
            std::string_view fill = {});
  void circle(const Point& center, int radius, std::string_view fill);
  /// A curve that leaves and arrives level.
  void curve(const Point& from, const Point& to, std::string_view cssClass,
             std::string_view stroke);

 private:
  std::ostream& out_;
};

}  // namespace vfpass::report
