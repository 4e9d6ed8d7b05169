#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "vfpass/base/text.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {

/// Appends an attribute.
void writeText(pugi::xml_node node, const char* name, const std::string& value);
/// Appends free text. Control characters and non-ASCII bytes, which XML or its writers would change
/// or refuse, are written as %NN, and `%` as %25.
void writeEscaped(pugi::xml_node node, const char* name, std::string_view value);
/// Appends `yes` or `no`.
void writeFlag(pugi::xml_node node, const char* name, bool value);

[[noreturn]] void throwBadAttribute(pugi::xml_node node, const char* name);

/// Reads a required attribute.
std::string_view readText(pugi::xml_node node, const char* name);
/// The inverse of writeEscaped().
std::string readEscaped(pugi::xml_node node, const char* name);
bool readFlag(pugi::xml_node node, const char* name);

/// Reads a required attribute with `parse` (text -> optional value).
template <typename Parse>
auto readValue(pugi::xml_node node, const char* name, Parse parse) {
  const auto value = parse(readText(node, name));
  if (!value) {
    throwBadAttribute(node, name);
  }
  return *value;
}

/// Like readValue(), but nullopt if the attribute is missing.
template <typename Parse>
auto readOptional(pugi::xml_node node, const char* name, Parse parse)
    -> decltype(parse(std::string_view())) {
  return node.attribute(name) ? decltype(parse(std::string_view()))(readValue(node, name, parse))
                              : std::nullopt;
}

/// Reads a required decimal number of at most `limit`.
template <typename Number>
Number readNumber(pugi::xml_node node, const char* name,
                  std::uint64_t limit = std::numeric_limits<Number>::max()) {
  const auto value = readValue(node, name, [](std::string_view text) { return parseNumber(text); });
  if (value > limit) {
    throwBadAttribute(node, name);
  }
  return static_cast<Number>(value);
}

}  // namespace vfpass::domain
