#include "document.hpp"

#include <algorithm>

#include "bad_xml.hpp"

namespace vfpass::domain {
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

}  // namespace vfpass::domain
