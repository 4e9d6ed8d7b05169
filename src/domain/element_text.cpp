#include "fragments.hpp"

#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

void layOut(pugi::xml_node node, const std::string& indentation) {
  const std::string inner = indentation + "  ";
  bool hasElements = false;
  for (auto child = node.first_child(); child; child = child.next_sibling()) {
    if (child.type() == pugi::node_element) {
      node.insert_child_before(pugi::node_pcdata, child).set_value(inner.c_str());
      layOut(child, inner);
      hasElements = true;
    }
  }
  if (hasElements) {
    node.append_child(pugi::node_pcdata).set_value(indentation.c_str());
  }
}

}  // namespace

std::string elementText(pugi::xml_node node, std::string_view indentation, unsigned quotes) {
  layOut(node, "\n" + std::string(indentation));
  std::ostringstream text;
  // Raw format: otherwise pugixml writes `<a />` where libvirt writes `<a/>`.
  node.print(text, "", pugi::format_raw | quotes, pugi::encoding_utf8);
  return text.str();
}

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
