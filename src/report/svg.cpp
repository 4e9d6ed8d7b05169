#include "markup.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <ostream>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

void appendPlace(pugi::xml_node element, std::string_view cssClass, int x, int y) {
  appendAttribute(element, "class", cssClass);
  element.append_attribute("x") = x;
  element.append_attribute("y") = y;
}

void appendFill(pugi::xml_node element, std::string_view fill) {
  if (!fill.empty()) {
    appendAttribute(element, "style", "fill:" + std::string(fill));
  }
}

std::string joined(std::initializer_list<int> numbers) {
  std::string text;
  for (const int number : numbers) {
    text += (text.empty() ? "" : " ") + std::to_string(number);
  }
  return text;
}

}  // namespace

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
  current_ = current_.append_child("svg");
  appendAttribute(current_, "xmlns", "http://www.w3.org/2000/svg");
  if (left != 0) {
    current_.append_attribute("x") = left;
  }
  current_.append_attribute("width") = width;
  current_.append_attribute("height") = height;
  appendAttribute(current_, "viewBox", joined({0, 0, width, height}));
  appendAttribute(current_, "role", "img");
  setText(current_.append_child("title"), title);
  setText(current_.append_child("style"), style);
}

void SvgWriter::end() { current_ = current_.parent(); }

void SvgWriter::openGroup(const std::string& tooltip) {
  current_ = current_.append_child("g");
  setText(current_.append_child("title"), tooltip);
}

void SvgWriter::closeGroup() { current_ = current_.parent(); }

void SvgWriter::rectangle(const Rectangle& place, int radius, std::string_view cssClass,
                          std::string_view fill) {
  auto element = current_.append_child("rect");
  appendPlace(element, cssClass, place.x, place.y);
  element.append_attribute("width") = place.width;
  element.append_attribute("height") = place.height;
  element.append_attribute("rx") = radius;
  appendFill(element, fill);
}

void SvgWriter::text(const Point& place, std::string_view cssClass, const std::string& content,
                     std::string_view fill) {
  auto element = current_.append_child("text");
  appendPlace(element, cssClass, place.x, place.y);
  appendFill(element, fill);
  setText(element, content);
}

void SvgWriter::circle(const Point& center, int radius, std::string_view fill) {
  auto element = current_.append_child("circle");
  element.append_attribute("cx") = center.x;
  element.append_attribute("cy") = center.y;
  element.append_attribute("r") = radius;
  appendAttribute(element, "fill", fill);
}

void SvgWriter::curve(const Point& from, const Point& to, std::string_view cssClass,
                      std::string_view stroke) {
  const int bend = std::max(24, std::abs(to.x - from.x) / 2);
  auto element = current_.append_child("path");
  appendAttribute(element, "class", cssClass);
  appendAttribute(element, "style", "stroke:" + std::string(stroke));
  appendAttribute(element, "d",
                  "M" + joined({from.x, from.y}) + " C" +
                      joined({from.x + bend, from.y, to.x - bend, to.y, to.x, to.y}));
}

void writeSvg(std::ostream& out, const pugi::xml_document& picture) {
  picture.save(out, "", pugi::format_default | pugi::format_no_declaration);
}

}  // namespace vfpass::report
