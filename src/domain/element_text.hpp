#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace vfpass::domain {

/// The text of an element with line breaks around child elements as libvirt writes them, indented
/// by two spaces per level; `indentation` is put before every line but the first. `quotes` is 0 or
/// pugi::format_attribute_single_quote.
std::string elementText(pugi::xml_node node, std::string_view indentation, unsigned quotes);

/// An element in one form: two elements have the same exactly if they differ at most in white
/// space, quotes and the order of attributes. Nesting must be bounded, as scanElements() does.
std::string canonicalElement(pugi::xml_node element);

}  // namespace vfpass::domain
