#include "svg.hpp"

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

std::string_view entityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

}  // namespace

std::string svgText(std::string_view text) {
  constexpr std::string_view noCharacter = "\xef\xbf";  // U+FFFE and U+FFFF are invalid in XML
  const std::string safe = printable(text);
  std::string result;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (safe.compare(i, 2, noCharacter) == 0 && i + 2 < safe.size() &&
        (safe[i + 2] == '\xbe' || safe[i + 2] == '\xbf')) {
      result += '?';
      i += 2;
      continue;
    }
    const auto entity = entityOf(safe[i]);
    result += entity.empty() ? std::string_view(&safe[i], 1) : entity;
  }
  return result;
}

std::string fitted(const std::string& text, std::size_t limit) {
  const std::string safe = printable(text);
  std::size_t characters = 0;
  std::size_t cut = 0;  // end of the last character that fits next to an ellipsis
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (isContinuation(safe[i])) {
      continue;
    }
    if (characters + 1 == limit) {
      cut = i;
    }
    if (++characters > limit) {
      return safe.substr(0, cut) + "…";
    }
  }
  return safe;
}

void SvgWriter::begin(int width, int height, const std::string& title, std::string_view style,
                      int left) {
  const std::string place = left == 0 ? "" : " x=\"" + std::to_string(left) + "\"";
  out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\"" << place << " width=\"" << width
       << "\" height=\"" << height << "\" viewBox=\"0 0 " << width << ' ' << height
       << "\" role=\"img\">\n<title>" << svgText(title) << "</title>\n<style>" << style
       << "</style>\n";
}

void SvgWriter::end() { out_ << "</svg>\n"; }

void SvgWriter::openGroup(const std::string& tooltip) {
  out_ << "<g><title>" << svgText(tooltip) << "</title>\n";
}

void SvgWriter::closeGroup() { out_ << "</g>\n"; }

void SvgWriter::rectangle(const Rectangle& place, int radius, std::string_view cssClass,
                          std::string_view fill) {
  out_ << "<rect class=\"" << cssClass << "\" x=\"" << place.x << "\" y=\"" << place.y
       << "\" width=\"" << place.width << "\" height=\"" << place.height << "\" rx=\"" << radius
       << '"';
  if (!fill.empty()) {
    out_ << " style=\"fill:" << fill << '"';
  }
  out_ << "/>\n";
}

void SvgWriter::text(const Point& place, std::string_view cssClass, const std::string& content,
                     std::string_view fill) {
  out_ << "<text class=\"" << cssClass << "\" x=\"" << place.x << "\" y=\"" << place.y << '"';
  if (!fill.empty()) {
    out_ << " style=\"fill:" << fill << '"';
  }
  out_ << '>' << svgText(content) << "</text>\n";
}

void SvgWriter::circle(const Point& center, int radius, std::string_view fill) {
  out_ << "<circle cx=\"" << center.x << "\" cy=\"" << center.y << "\" r=\"" << radius
       << "\" fill=\"" << fill << "\"/>\n";
}

void SvgWriter::curve(const Point& from, const Point& to, std::string_view cssClass,
                      std::string_view stroke) {
  const int bend = std::max(24, std::abs(to.x - from.x) / 2);
  out_ << "<path class=\"" << cssClass << "\" style=\"stroke:" << stroke << "\" d=\"M" << from.x
       << ' ' << from.y << " C" << from.x + bend << ' ' << from.y << ' ' << to.x - bend << ' '
       << to.y << ' ' << to.x << ' ' << to.y << "\"/>\n";
}

}  // namespace vfpass::report
