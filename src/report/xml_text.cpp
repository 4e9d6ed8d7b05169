#include "xml_text.hpp"

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

}  // namespace vfpass::report
