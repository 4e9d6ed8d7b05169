#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace vfpass::domain {

/// An element's text with line breaks around child elements as libvirt writes them, two spaces a
/// level; `indentation` stands before every line but the first. `quotes` is 0 or
/// pugi::format_attribute_single_quote.
std::string elementText(pugi::xml_node node, std::string_view indentation, unsigned quotes);

}  // namespace vfpass::domain
