#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/pci_address.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {

/// Limits of our own metadata element. vfpass writes at most five levels.
inline constexpr std::size_t maxMetadataNesting = 16;
inline constexpr std::size_t maxMetadataElements = 100'000;

/// A domain XML in which only our own metadata element has content.
struct OwnMetadata {
  /// As long as the original: the content of all other elements in `<metadata>` is blank.
  std::string xml;
  /// Why the content of our element is blank, too; empty if it is not.
  std::string fault;
};

/// libvirt keeps everything that somebody writes into `<metadata>`, as deep as libxml2 parses it
/// (256 levels) and as much as fits. So foreign metadata must not make the domain unreadable, or
/// cost memory: it never reaches the parser. Throws as TagReader does.
OwnMetadata withoutForeignMetadata(std::string_view xml);

inline constexpr std::size_t maxXmlSize = std::size_t{16} << 20U;

/// A parsed domain XML that keeps the position of each element in the text, so that edits splice
/// the text instead of printing the tree: untouched parts cannot change. Foreign metadata is
/// neither read nor changed: its elements have no content in the tree.
class Document {
 public:
  /// `xml` must outlive the document. Throws Error (ExitCode::badInput) if it is too large, not
  /// well-formed or not a domain.
  explicit Document(std::string_view xml);

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] pugi::xml_node domain() const { return tree_.document_element(); }
  [[nodiscard]] pugi::xml_node devices() const { return domain().child("devices"); }
  [[nodiscard]] const ElementSpan& span(pugi::xml_node element) const;
  /// Why our metadata element has no content in the tree either; empty if it has.
  [[nodiscard]] const std::string& metadataFault() const { return read_.fault; }

 private:
  std::string_view text_;
  OwnMetadata read_;
  std::vector<ElementSpan> spans_;
  pugi::xml_document tree_;
};

/// The domain's UUID. Throws Error (ExitCode::badInput) if it is missing or invalid.
Uuid domainUuid(const Document& document);

/// An attribute's value; empty if the attribute is missing.
inline std::string_view attributeText(pugi::xml_node node, const char* name) {
  return node.attribute(name).value();
}

/// The last child element; a null node if there is none.
pugi::xml_node lastElement(pugi::xml_node parent);

/// The alias of a device element; empty if it has none.
std::string_view aliasOf(pugi::xml_node device);

/// The text of an element with line breaks around child elements as libvirt writes them, indented
/// by two spaces per level; `indentation` is put before every line but the first. `quotes` is 0 or
/// pugi::format_attribute_single_quote.
std::string elementText(pugi::xml_node node, std::string_view indentation, unsigned quotes);

/// An element in one form: two elements have the same exactly if they differ at most in white
/// space, quotes and the order of attributes. Nesting must be bounded, as scanElements() does.
std::string canonicalElement(pugi::xml_node element);

/// Reads domain, bus, slot and function of an `<address>` element as libvirt does: hexadecimal with
/// `0x`, octal with a leading 0, otherwise decimal; a missing attribute is 0. nullopt for anything
/// else and for values out of range.
std::optional<PciAddress> readPciAddress(pugi::xml_node address);

/// Writes the four attributes in libvirt's format.
void writePciAddress(pugi::xml_node address, const PciAddress& value);

/// The device's PCI address in the guest; nullopt if it has none yet or is not on PCI.
std::optional<PciAddress> guestAddressOf(pugi::xml_node device);

/// Sets an attribute, adding it if it is missing.
void setAttribute(pugi::xml_node node, const char* name, const char* value);

/// Parses a number of at most 255; nullopt otherwise.
std::optional<unsigned> smallNumber(std::string_view text);

/// Reads a `<controller type='pci'>` with this index. Leaves out invalid values.
PciController readController(pugi::xml_node device, unsigned index);

}  // namespace vfpass::domain
