#include "canonical_element.hpp"

#include <set>
#include <string_view>
#include <utility>

#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

// Length-prefixed, so that two different elements never have the same form.
void addText(std::string_view text, std::string& form) {
  form += std::to_string(text.size()) + ":";
  form += text;
}

void addAttributes(pugi::xml_node element, std::string& form) {
  std::multiset<std::pair<std::string_view, std::string_view>> sorted;
  for (const auto attribute : element.attributes()) {
    sorted.emplace(attribute.name(), attribute.value());
  }
  for (const auto& [name, value] : sorted) {
    addText(name, form);
    addText(value, form);
  }
}

void addElement(pugi::xml_node element, std::string& form) {
  form += '<';
  addText(element.name(), form);
  addAttributes(element, form);
  form += '>';
  addText(trim(element.child_value()), form);
  for (const auto child : element) {
    if (child.type() == pugi::node_element) {
      addElement(child, form);
    }
  }
  form += '/';
}

}  // namespace

std::string canonicalElement(pugi::xml_node element) {
  std::string form;
  addElement(element, form);
  return form;
}

}  // namespace vfpass::domain
