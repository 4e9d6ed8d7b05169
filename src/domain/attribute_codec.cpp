#include "attribute_codec.hpp"

#include <array>
#include <cstdio>

namespace vfpass::domain {
namespace {

std::optional<std::string> unescape(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    if (text.front() != '%') {
      result += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto byte = text.size() < 3 ? std::nullopt : parseNumber(text.substr(1, 2), 16);
    if (!byte) {
      return std::nullopt;
    }
    result += static_cast<char>(static_cast<unsigned char>(*byte));
    text.remove_prefix(3);
  }
  return result;
}

std::optional<bool> parseFlag(std::string_view text) {
  return text == "yes" ? std::optional(true) : text == "no" ? std::optional(false) : std::nullopt;
}

}  // namespace

void writeText(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(value.c_str());
}

void writeEscaped(pugi::xml_node node, const char* name, std::string_view value) {
  std::string escaped;
  for (const char character : value) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20U && byte < 0x7fU && character != '%') {
      escaped += character;
      continue;
    }
    std::array<char, 4> code{};
    std::snprintf(code.data(), code.size(), "%%%02x", byte);
    escaped += code.data();
  }
  writeText(node, name, escaped);
}

void writeFlag(pugi::xml_node node, const char* name, bool value) {
  writeText(node, name, value ? "yes" : "no");
}

void throwBadAttribute(pugi::xml_node node, const char* name) {
  const auto attribute = node.attribute(name);
  const std::string place =
      std::string("attribute ") + name + " of <" + printable(node.name()) + ">";
  throw badMetadata(attribute
                        ? place + " has the invalid value '" + printable(attribute.value()) + "'"
                        : place + " is missing");
}

std::string_view readText(pugi::xml_node node, const char* name) {
  const auto attribute = node.attribute(name);
  if (!attribute) {
    throwBadAttribute(node, name);
  }
  return attribute.value();
}

std::string readEscaped(pugi::xml_node node, const char* name) {
  return readValue(node, name, unescape);
}

bool readFlag(pugi::xml_node node, const char* name) { return readValue(node, name, parseFlag); }

}  // namespace vfpass::domain
