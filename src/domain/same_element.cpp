#include "same_element.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

std::vector<pugi::xml_node> elementsOf(pugi::xml_node node) {
  std::vector<pugi::xml_node> elements;
  std::copy_if(node.begin(), node.end(), std::back_inserter(elements),
               [](pugi::xml_node child) { return child.type() == pugi::node_element; });
  return elements;
}

bool sameAttributes(pugi::xml_node one, pugi::xml_node other) {
  const auto count = [](pugi::xml_node node) {
    return std::distance(node.attributes_begin(), node.attributes_end());
  };
  return count(one) == count(other) &&
         std::all_of(one.attributes_begin(), one.attributes_end(),
                     [other](const pugi::xml_attribute& each) {
                       const auto twin = other.attribute(each.name());
                       return twin && std::string_view(twin.value()) == each.value();
                     });
}

}  // namespace

// Nesting is bounded: both texts went through scanElements().
bool sameElement(pugi::xml_node one, pugi::xml_node other) {
  const auto ones = elementsOf(one);
  const auto others = elementsOf(other);
  return std::string_view(one.name()) == other.name() && sameAttributes(one, other) &&
         trim(one.child_value()) == trim(other.child_value()) &&
         std::equal(ones.begin(), ones.end(), others.begin(), others.end(), sameElement);
}

}  // namespace vfpass::domain
