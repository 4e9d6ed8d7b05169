#include "edit_codec.hpp"

#include "attribute_codec.hpp"
#include "element_spans.hpp"
#include "our_elements.hpp"

namespace vfpass::domain {
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
