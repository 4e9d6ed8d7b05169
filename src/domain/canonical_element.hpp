#pragma once

#include <pugixml.hpp>
#include <string>

namespace vfpass::domain {

/// An element in one form: two elements have the same exactly if they differ at most in white
/// space, quotes and the order of attributes. Nesting must be bounded, as scanElements() does.
std::string canonicalElement(pugi::xml_node element);

}  // namespace vfpass::domain
