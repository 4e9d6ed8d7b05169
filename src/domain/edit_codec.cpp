#include "edit_codec.hpp"

#include "attribute_codec.hpp"
#include "element_spans.hpp"
#include "our_elements.hpp"

namespace vfpass::domain {
namespace {

constexpr std::size_t longestName = 32;
constexpr std::size_t longestElement = 1U << 20U;
constexpr std::size_t mostEdits = 64;

std::optional<std::string> parseName(std::string_view text) {
  const bool sound =
      !text.empty() && text.size() <= longestName &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
  return sound ? std::optional(std::string(text)) : std::nullopt;
}

// One element and nothing else. Its nesting is bounded before the parser, which is recursive in
// places, sees it.
bool isElement(const std::string& text) {
  try {
    const auto spans = scanElements(text);
    pugi::xml_document tree;
    return text.size() <= longestElement && spans.front().begin == 0 &&
           spans.front().end == text.size() && tree.load_buffer(text.data(), text.size());
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
    if (isOurElement(node, "element")) {
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
    if (isOurElement(node, "setting")) {
      edits.push_back(readEdit(node));
    }
    if (edits.size() > mostEdits) {
      throw badMetadata("a lease has more than 64 domain settings");
    }
  }
  return edits;
}

}  // namespace vfpass::domain
