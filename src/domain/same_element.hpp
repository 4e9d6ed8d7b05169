#pragma once

#include <pugixml.hpp>

namespace vfpass::domain {

/// True if two elements are equal, ignoring white space, quotes and the order of attributes.
bool sameElement(pugi::xml_node one, pugi::xml_node other);

}  // namespace vfpass::domain
