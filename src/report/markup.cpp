#include "markup.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <ostream>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {

std::string xmlText(std::string_view text) {
  std::string safe = printable(text);
  for (const std::string_view noncharacter : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {  // U+FFFE, U+FFFF
    for (auto at = safe.find(noncharacter); at != std::string::npos;
         at = safe.find(noncharacter, at)) {
      safe.replace(at, noncharacter.size(), "?");
    }
  }
  return safe;
}

void appendAttribute(pugi::xml_node element, const char* name, std::string_view value) {
  element.append_attribute(name).set_value(xmlText(value).c_str());
}

void setText(pugi::xml_node element, std::string_view text) {
  element.text().set(xmlText(text).c_str());
}

namespace {

// `img-src data:` is not needed: pictures are inline SVG.
constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="vfpass">
)";

constexpr const char* pageStyle = R"(<style>
:root{--page:#fff;--text:#1f2933;--soft:#52606d;--line:#d9e0e7;--box:#f5f7fa;--good:#1b7f3b;--bad:#c0262d;--warn:#9a5b00;
--open:#5a4fcf;--bar:#3d7ebf}
@media (prefers-color-scheme:dark){:root{--page:#14181d;--text:#e4e9ee;--soft:#a3b0bd;--line:#333d47;--box:#1c232a;
--good:#5fd38a;--bad:#ff8087;--warn:#f0b45c;--open:#a9a1ff;--bar:#6aa7e0}}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.45 system-ui,'Segoe UI',Helvetica,Arial,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .6rem}
.facts{color:var(--soft);margin:.2rem 0 1rem}
.verdict{display:inline-block;font-weight:700;padding:.1rem .6rem;border:2px solid;border-radius:.4rem;margin-right:.6rem}
.passed{color:var(--good)}.failed{color:var(--bad)}.warning{color:var(--warn)}.not_observable{color:var(--open)}
.waived{color:var(--soft)}
.problem{border-left:4px solid var(--bad);background:var(--box);padding:.7rem 1rem;border-radius:.25rem}
.problem dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.4rem 0 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600;white-space:nowrap}td{overflow-wrap:anywhere;min-width:3rem}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.result{font-weight:600;white-space:nowrap}.key{white-space:nowrap}
.bar{position:relative;min-width:9rem;height:.8rem;margin-top:.3rem;background:var(--box);border:1px solid var(--line);
border-radius:.2rem}
.bar span{position:absolute;inset:0 auto 0 0;background:var(--bar);border-radius:.15rem}
.good span{background:var(--good)}.weak span{background:var(--warn)}.bad span{background:var(--bad)}
summary{cursor:pointer;color:var(--soft);margin:.6rem 0}
svg{max-width:100%;height:auto}figure{margin:0}figcaption{color:var(--soft);font-size:.9rem}
@media screen and (max-width:40rem){thead{display:none}tr{display:block;padding:.4rem 0;border-bottom:1px solid var(--line)}
td{display:grid;grid-template-columns:7.5rem 1fr;border:0;padding:.1rem 0}td:empty{display:none}
td::before{content:attr(data-heading);color:var(--soft);font-weight:400}
.number{text-align:left}td .bar{grid-column:2;min-width:0}}
@media print{main{max-width:none;padding:0}h2{break-after:avoid}tr{break-inside:avoid}}
</style>
)";

constexpr unsigned pageFormat =
    pugi::format_raw | pugi::format_no_declaration | pugi::format_no_empty_element_tags;

}  // namespace

HtmlPage::HtmlPage(const std::string& title) : title_(title) {
  main_ = document_.append_child("body").append_child("main");
  appendElement(main_, "h1", title);
}

pugi::xml_node HtmlPage::addSection(const std::string& heading) {
  auto section = main_.append_child("section");
  appendElement(section, "h2", heading);
  return section;
}

void HtmlPage::addPicture(pugi::xml_node parent, const std::string& svg,
                          const std::string& description) {
  pugi::xml_document picture;
  if (!picture.load_string(svg.c_str())) {
    return;
  }
  auto figure = parent.append_child("figure");
  figure.append_copy(picture.document_element());
  appendElement(figure, "figcaption", description);
}

void HtmlPage::write(std::ostream& out) const {
  pugi::xml_document title;
  appendElement(title, "title", title_);
  out << head;
  title.save(out, "", pageFormat);
  out << '\n' << pageStyle << "</head>\n";
  document_.save(out, "", pageFormat);
  out << "\n</html>\n";
}

pugi::xml_node appendElement(pugi::xml_node parent, const char* name, std::string_view text,
                             const char* cssClass) {
  auto element = parent.append_child(name);
  if (*cssClass != '\0') {
    appendAttribute(element, "class", cssClass);
  }
  if (!text.empty()) {
    setText(element, text);
  }
  return element;
}

HtmlTable::HtmlTable(pugi::xml_node parent, const std::vector<std::string>& headings) {
  auto box = parent.append_child("div");
  appendAttribute(box, "class", "wide");
  auto table = box.append_child("table");
  auto row = table.append_child("thead").append_child("tr");
  for (const auto& heading : headings) {
    const bool numbers = heading.starts_with('>');
    headings_.push_back(heading.substr(numbers ? 1 : 0));
    appendAttribute(appendElement(row, "th", headings_.back(), numbers ? "number" : ""), "scope",
                    "col");
  }
  body_ = table.append_child("tbody");
}

HtmlTable::~HtmlTable() {
  for (pugi::xml_node row : body_.children()) {
    auto heading = headings_.begin();
    for (pugi::xml_node cell : row.children()) {
      if (heading != headings_.end()) {
        appendAttribute(cell, "data-heading", *heading++);
      }
    }
  }
}

pugi::xml_node HtmlTable::addRow() { return body_.append_child("tr"); }

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
