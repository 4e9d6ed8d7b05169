#include "element_layout.hpp"

#include <sstream>

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

}  // namespace vfpass::domain
