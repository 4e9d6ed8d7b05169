#include "yaml_tree.hpp"

#include <algorithm>
#include <limits>

#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

constexpr std::size_t longestQuote = 60;
constexpr std::size_t mostKeysShown = 4;

std::string describeKeys(const std::vector<Key>& keys) {
  std::string text = keys.size() == 1 ? "the key " : "the keys ";
  const std::size_t shown = std::min(keys.size(), mostKeysShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == keys.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + quoteForMessage(keys[i].text);
  }
  return keys.size() > shown ? text + " and others" : text;
}

}  // namespace

const Node* find(const Node& node, std::string_view key) {
  if (node.kind != NodeKind::block) {
    return nullptr;
  }
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    if (node.keys[i].text == key) {
      return &node.items[i];
    }
  }
  return nullptr;
}

Node* find(Node& node, std::string_view key) {
  return const_cast<Node*>(find(static_cast<const Node&>(node), key));
}

Node* findSound(Node& node, std::string_view key) {
  Node* const value = find(node, key);
  return value == nullptr || value->refused ? nullptr : value;
}

std::span<Node> entriesOf(Node& node, std::string_view key) {
  Node* const list = findSound(node, key);
  return list == nullptr || list->kind != NodeKind::list ? std::span<Node>() : list->items;
}

std::optional<std::string> textOf(const Node* node) {
  if (node == nullptr || node->refused || node->kind != NodeKind::text) {
    return std::nullopt;
  }
  return node->text;
}

std::optional<bool> booleanOf(const Node* node) {
  if (node == nullptr || node->refused || node->kind != NodeKind::boolean) {
    return std::nullopt;
  }
  return node->boolean;
}

std::optional<unsigned> unsignedOf(const Node* node) {
  if (node == nullptr || node->refused || node->kind != NodeKind::integer || node->integer < 0 ||
      node->integer > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
    return std::nullopt;
  }
  return static_cast<unsigned>(node->integer);
}

std::string quoteForMessage(std::string_view text) {
  std::size_t end = std::min(text.size(), longestQuote);
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
    --end;  // never cut inside a UTF-8 sequence
  }
  return "`" + printable(text.substr(0, end)) + (end < text.size() ? "..." : "") + "`";
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case NodeKind::null:
      return "nothing";
    case NodeKind::boolean:
      return "the boolean " + quoteForMessage(node.text);
    case NodeKind::list:
      return node.items.empty() ? "an empty list"
                                : "a list of " + std::to_string(node.items.size());
    case NodeKind::block:
      return node.keys.empty() ? "an empty block" : describeKeys(node.keys);
    default:
      return node.text.empty() ? "an empty string" : quoteForMessage(node.text);
  }
}

}  // namespace vfpass::config
