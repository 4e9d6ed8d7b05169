#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "document.hpp"
#include "domain_edits.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"

namespace vfpass::domain {
namespace {

// Not that of our metadata: libvirt keeps one element of each namespace.
constexpr const char* refusalNamespace = "https://vfpass.org/xmlns/refusal/1";
constexpr const char* elementName = "vfpass:refusal";
constexpr const char* declaration = "xmlns:vfpass";

}  // namespace

std::string withRefusal(std::string_view xml, const Error& error) {
  const Document document(xml);
  const auto metadata = document.domain().child("metadata");
  pugi::xml_document added;
  pugi::xml_node parent = added;
  if (!metadata) {
    parent = added.append_child("metadata");
  }
  auto node = parent.append_child(elementName);
  setAttribute(node, declaration, refusalNamespace);
  setAttribute(node, "reason", printableLine(error.what()).c_str());
  setAttribute(node, "remedy", printableLine(error.remedy()).c_str());
  const auto container = metadata ? metadata : document.domain();
  return applySplices(
      xml, {insertInto(document, container, "\n" + elementText(added.first_child(), "", 0))});
}

std::optional<Error> refusalIn(std::string_view xml) {
  if (xml.find(refusalNamespace) == std::string_view::npos) {
    return std::nullopt;
  }
  const Document document(xml);
  const auto found = document.domain().child("metadata").child(elementName);
  if (!found || attributeText(found, declaration) != refusalNamespace) {
    return std::nullopt;
  }
  return Error(std::string(attributeText(found, "reason")),
               std::string(attributeText(found, "remedy")), ExitCode::refused);
}

}  // namespace vfpass::domain
