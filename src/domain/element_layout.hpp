#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace vfpass::domain {

/// The text of an element with line breaks around child elements as libvirt writes them, indented
/// by two spaces per level; `indentation` is put before every line but the first. `quotes` is 0 or
/// pugi::format_attribute_single_quote.
std::string elementText(pugi::xml_node node, std::string_view indentation, unsigned quotes);

}  // namespace vfpass::domain
