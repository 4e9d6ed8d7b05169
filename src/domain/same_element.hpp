#pragma once

#include <pugixml.hpp>
#include <string>

namespace vfpass::domain {

/// True when an element of a domain XML says what `text` says, whatever its white space, quotes and
/// order of attributes.
bool isElement(pugi::xml_node node, const std::string& text);

}  // namespace vfpass::domain
