#pragma once

#include <pugixml.hpp>
#include <string>

namespace vfpass::domain {

/// True if an element of a domain XML equals `text`, ignoring white space, quotes and the order of
/// attributes.
bool isElement(pugi::xml_node node, const std::string& text);

}  // namespace vfpass::domain
