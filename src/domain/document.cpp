#include "document.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "vfpass/base/text.hpp"
#include "vfpass/lease.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

// The levels of the open elements: <domain> is 0, <metadata> 1, an element of some program 2.
constexpr std::size_t programLevel = 2;

class Blanking {
 public:
  explicit Blanking(std::string_view xml) : xml_(xml), result_{std::string(xml), {}} {}

  OwnMetadata run() {
    TagReader reader(xml_);
    while (const auto tag = reader.next()) {
      if (tag->kind == Tag::Kind::end) {
        level_ -= level_ > 0 ? 1 : 0;
        leave(*tag);
        continue;
      }
      enter(*tag, reader.nameOf(*tag));
      level_ += tag->kind == Tag::Kind::start ? 1 : 0;
    }
    return std::move(result_);
  }

 private:
  void enter(const Tag& tag, std::string_view name) {
    if (level_ < programLevel) {
      inMetadata_ = level_ == 1 && name == "metadata";
      declaredAbove_ = (level_ > 0 && declaredAbove_) || namesOurs(tag);
    } else if (inMetadata_ && level_ == programLevel) {
      content_ = tag.end;
      keep_ = name.substr(name.find(':') + 1) == "domain" && (declaredAbove_ || namesOurs(tag));
      deepest_ = 0;
    } else if (inMetadata_) {
      elements_ += keep_ ? 1 : 0;
      deepest_ = std::max(deepest_, level_ - programLevel);
    }
  }

  void leave(const Tag& tag) {
    if (!inMetadata_ || level_ != programLevel) {
      return;
    }
    const bool excessive = deepest_ > maxMetadataNesting || elements_ > maxMetadataElements;
    if (keep_ && excessive) {
      result_.fault = "too many elements, or nested too deeply";
    }
    if (!keep_ || excessive) {
      std::fill(result_.xml.begin() + static_cast<std::ptrdiff_t>(content_),
                result_.xml.begin() + static_cast<std::ptrdiff_t>(tag.begin), ' ');
    }
  }

  // Only a hint: the namespace can be the value of any attribute.
  [[nodiscard]] bool namesOurs(const Tag& tag) const {
    return xml_.substr(tag.begin, tag.end - tag.begin).find(metadataNamespace) !=
           std::string_view::npos;
  }

  std::string_view xml_;
  OwnMetadata result_;
  std::size_t level_ = 0;
  bool inMetadata_ = false;
  bool declaredAbove_ = false;  // on <domain> or <metadata>
  std::size_t elements_ = 0;    // in all elements that may be ours
  // Of the last element of a program:
  bool keep_ = false;
  std::size_t content_ = 0;
  std::size_t deepest_ = 0;
};

// libvirt reads these with base 0, where a leading zero means octal; it writes hexadecimal.
std::optional<std::uint64_t> readNumber(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return parseNumber(text.substr(2), 16);
  }
  return parseNumber(text, text.starts_with('0') ? 8 : 10);
}

bool readPart(pugi::xml_node address, const char* name, std::uint64_t limit, auto& part) {
  const auto attribute = address.attribute(name);
  const auto value = attribute ? readNumber(attribute.value()) : 0;
  if (!value || *value > limit) {
    return false;
  }
  part = static_cast<std::remove_reference_t<decltype(part)>>(*value);
  return true;
}

void writePart(pugi::xml_node address, const char* name, int width, unsigned value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%0*x", width, value);
  setAttribute(address, name, text.data());
}

}  // namespace

OwnMetadata withoutForeignMetadata(std::string_view xml) { return Blanking(xml).run(); }

namespace {

std::string_view checkedSize(std::string_view xml) {
  if (xml.size() > maxXmlSize) {
    throw badXml("larger than 16 MiB");
  }
  if (xml.find('\0') != std::string_view::npos) {
    throw badXml("contains a NUL byte");
  }
  return xml;
}

}  // namespace

Document::Document(std::string_view xml)
    : text_(checkedSize(xml)), read_(withoutForeignMetadata(xml)), spans_(scanElements(read_.xml)) {
  // The encoding is fixed because offsets count bytes of the input text.
  const auto result = tree_.load_buffer(read_.xml.data(), read_.xml.size(), pugi::parse_default,
                                        pugi::encoding_utf8);
  if (!result) {
    throw badXml(std::string(result.description()) + " at byte " + std::to_string(result.offset));
  }
  const auto root = tree_.document_element();
  if (std::string_view(root.name()) != "domain" || root.next_sibling()) {
    throw badXml("the root element is not a single <domain>");
  }
}

const ElementSpan& Document::span(pugi::xml_node element) const {
  const auto begin = static_cast<std::size_t>(element.offset_debug()) - 1;  // offset of the name
  const auto found =
      std::lower_bound(spans_.begin(), spans_.end(), begin,
                       [](const ElementSpan& span, std::size_t at) { return span.begin < at; });
  if (found == spans_.end() || found->begin != begin) {
    throw badXml("ambiguous tags");
  }
  return *found;
}

Uuid domainUuid(const Document& document) {
  const auto uuid = parseUuid(document.domain().child_value("uuid"));
  if (!uuid) {
    throw badXml("no valid <uuid>");
  }
  return *uuid;
}

pugi::xml_node lastElement(pugi::xml_node parent) {
  auto node = parent.last_child();
  while (node && node.type() != pugi::node_element) {
    node = node.previous_sibling();
  }
  return node;
}

std::string_view aliasOf(pugi::xml_node device) {
  return attributeText(device.child("alias"), "name");
}

namespace {

void layOut(pugi::xml_node node, const std::string& indentation) {
  const std::string inner = indentation + "  ";
  bool hasElements = false;
  for (auto child = node.first_child(); child; child = child.next_sibling()) {
    if (child.type() == pugi::node_element) {
      node.insert_child_before(pugi::node_pcdata, child).set_value(inner.c_str());
      layOut(child, inner);
      hasElements = true;
    }
  }
  if (hasElements) {
    node.append_child(pugi::node_pcdata).set_value(indentation.c_str());
  }
}

}  // namespace

std::string elementText(pugi::xml_node node, std::string_view indentation, unsigned quotes) {
  layOut(node, "\n" + std::string(indentation));
  std::ostringstream text;
  // Raw format: otherwise pugixml writes `<a />` where libvirt writes `<a/>`.
  node.print(text, "", pugi::format_raw | quotes, pugi::encoding_utf8);
  return text.str();
}

namespace {

// Length-prefixed, so that two different elements never have the same form.
void addText(std::string_view text, std::string& form) {
  form += std::to_string(text.size()) + ":";
  form += text;
}

void addAttributes(pugi::xml_node element, std::string& form) {
  std::multiset<std::pair<std::string_view, std::string_view>> sorted;
  for (const auto attribute : element.attributes()) {
    sorted.emplace(attribute.name(), attribute.value());
  }
  for (const auto& [name, value] : sorted) {
    addText(name, form);
    addText(value, form);
  }
}

void addElement(pugi::xml_node element, std::string& form) {
  form += '<';
  addText(element.name(), form);
  addAttributes(element, form);
  form += '>';
  addText(trim(element.child_value()), form);
  for (const auto child : element) {
    if (child.type() == pugi::node_element) {
      addElement(child, form);
    }
  }
  form += '/';
}

}  // namespace

std::string canonicalElement(pugi::xml_node element) {
  std::string form;
  addElement(element, form);
  return form;
}

std::optional<PciAddress> readPciAddress(pugi::xml_node address) {
  PciAddress value;
  const bool complete = address && readPart(address, "domain", 0xffffffffU, value.domain) &&
                        readPart(address, "bus", 0xff, value.bus) &&
                        readPart(address, "slot", 0x1f, value.slot) &&
                        readPart(address, "function", 7, value.function);
  return complete ? std::optional(value) : std::nullopt;
}

void writePciAddress(pugi::xml_node address, const PciAddress& value) {
  writePart(address, "domain", 4, value.domain);
  writePart(address, "bus", 2, value.bus);
  writePart(address, "slot", 2, value.slot);
  writePart(address, "function", 1, value.function);
}

std::optional<PciAddress> guestAddressOf(pugi::xml_node device) {
  const auto address = device.child("address");
  return attributeText(address, "type") == "pci" ? readPciAddress(address) : std::nullopt;
}

void setAttribute(pugi::xml_node node, const char* name, const char* value) {
  auto attribute = node.attribute(name);
  (attribute ? attribute : node.append_attribute(name)).set_value(value);
}

std::optional<unsigned> smallNumber(std::string_view text) {
  const auto value = parseNumber(text);
  return value && *value <= 0xffU ? std::optional(static_cast<unsigned>(*value)) : std::nullopt;
}

PciController readController(pugi::xml_node device, unsigned index) {
  const auto target = device.child("target");
  PciController controller;
  controller.index = index;
  controller.model = attributeText(device, "model");
  controller.address = guestAddressOf(device);
  controller.node = smallNumber(trim(target.child_value("node")));
  controller.busNumber = smallNumber(attributeText(target, "busNr"));
  controller.chassis = smallNumber(attributeText(target, "chassis"));
  controller.hotplug = attributeText(target, "hotplug") != "off";
  if (const auto alias = aliasOf(device); isOurAlias(alias)) {
    controller.ourAlias = alias;
  }
  return controller;
}

}  // namespace vfpass::domain
