#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace vfpass::report {

/// Untrusted text reduced to the characters that XML 1.0 allows: control characters and bytes that
/// are not UTF-8 as in `printable`, U+FFFE and U+FFFF as `?`. pugixml escapes the markup, but
/// writes control characters as references (`&#27;`) that no XML 1.0 parser accepts.
std::string xmlText(std::string_view text);

/// Appends an attribute with the `xmlText` of the value.
void appendAttribute(pugi::xml_node element, const char* name, std::string_view value);

/// Sets the content of an element to the `xmlText` of the text.
void setText(pugi::xml_node element, std::string_view text);

}  // namespace vfpass::report
