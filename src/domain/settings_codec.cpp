#include "settings_codec.hpp"

#include "attribute_codec.hpp"
#include "our_elements.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

// One overload of write() and read() for each type of value; `name` is the attribute's row name.

template <typename Value>
void write(pugi::xml_node node, const std::string& name, const Value& value) {
  writeText(node, name.c_str(), std::string(toString(value)));
}

void write(pugi::xml_node node, const std::string& name, bool value) {
  writeFlag(node, name.c_str(), value);
}

void write(pugi::xml_node node, const std::string& name, const Vlan& vlan) {
  writeText(node, (name + "-id").c_str(), std::to_string(vlan.id));
  writeText(node, (name + "-qos").c_str(), std::to_string(vlan.qos));
  writeText(node, (name + "-protocol").c_str(), std::string(toString(vlan.protocol)));
}

void write(pugi::xml_node node, const std::string& name, const Rate& rate) {
  writeText(node, (name + "-min").c_str(), std::to_string(rate.min));
  writeText(node, (name + "-max").c_str(), std::to_string(rate.max));
}

void read(pugi::xml_node node, const std::string& name, std::optional<MacAddress>& value) {
  value = readOptional(node, name.c_str(), parseMacAddress);
}

void read(pugi::xml_node node, const std::string& name, std::optional<Guid>& value) {
  value = readOptional(node, name.c_str(), parseGuid);
}

void read(pugi::xml_node node, const std::string& name, std::optional<LinkState>& value) {
  value = readOptional(node, name.c_str(), parseLinkState);
}

void read(pugi::xml_node node, const std::string& name, std::optional<bool>& value) {
  if (node.attribute(name.c_str())) {
    value = readFlag(node, name.c_str());
  }
}

void read(pugi::xml_node node, const std::string& name, std::optional<Vlan>& value) {
  if (node.attribute((name + "-id").c_str())) {
    value = Vlan{readNumber<std::uint16_t>(node, (name + "-id").c_str(), 4094),
                 readNumber<std::uint8_t>(node, (name + "-qos").c_str(), 7),
                 readValue(node, (name + "-protocol").c_str(), parseVlanProtocol)};
  }
}

void read(pugi::xml_node node, const std::string& name, std::optional<Rate>& value) {
  if (node.attribute((name + "-min").c_str()) || node.attribute((name + "-max").c_str())) {
    value = Rate{readNumber<std::uint32_t>(node, (name + "-min").c_str()),
                 readNumber<std::uint32_t>(node, (name + "-max").c_str())};
  }
}

}  // namespace

void writeSettings(pugi::xml_node node, const VfSettings& settings) {
  forEachAttribute([&](const auto& row) {
    if (const auto& value = settings.*row.member) {
      write(node, row.name, *value);
    }
  });
}

VfSettings readSettings(pugi::xml_node node) {
  VfSettings settings;
  forEachAttribute([&](const auto& row) { read(node, row.name, settings.*row.member); });
  return settings;
}

namespace {

constexpr std::size_t maxNameLength = 32;
constexpr std::size_t maxElementSize = 1U << 20U;

std::optional<std::string> parseName(std::string_view text) {
  const bool valid =
      !text.empty() && text.size() <= maxNameLength &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
  return valid ? std::optional(std::string(text)) : std::nullopt;
}

// Exactly one element. scanElements() bounds its nesting before it reaches the parser, which is
// recursive in places.
bool isElement(const std::string& text) {
  if (text.size() > maxElementSize) {
    return false;
  }
  try {
    const auto spans = scanElements(text);
    pugi::xml_document tree;
    return spans.front().begin == 0 && spans.front().end == text.size() &&
           tree.load_buffer(text.data(), text.size());
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void writeEdit(pugi::xml_node node, const DomainEdit& edit) {
  writeText(node, "name", edit.setting);
  writeText(node, "place", std::string(toString(edit.place)));
  for (const std::string& element : edit.elements) {
    writeEscaped(node.append_child("vfpass:element"), "text", element);
  }
}

DomainEdit readEdit(pugi::xml_node setting) {
  DomainEdit edit;
  edit.setting = readValue(setting, "name", parseName);
  edit.place = readValue(setting, "place", parseEditPlace);
  for (const auto node : setting) {
    if (isOurChild(node, "element")) {
      edit.elements.push_back(readEscaped(node, "text"));
      if (!isElement(edit.elements.back())) {
        throwBadAttribute(node, "text");
      }
    }
  }
  return edit;
}

std::vector<DomainEdit> readEdits(pugi::xml_node lease) {
  std::vector<DomainEdit> edits;
  for (const auto node : lease) {
    if (isOurChild(node, "setting")) {
      edits.push_back(readEdit(node));
    }
    if (edits.size() > maxEdits) {
      throw badMetadata("a lease has more than " + std::to_string(maxEdits) + " domain settings");
    }
  }
  return edits;
}

}  // namespace vfpass::domain
