#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::config {

/// Line and column in characters; both count from 1.
struct Position {
  int line = 1;
  int column = 1;

  auto operator<=>(const Position&) const = default;
};

/// A key of a block, as written.
struct Key {
  std::string text;
  Position position;
};

enum class NodeKind { null, boolean, integer, number, text, list, block };

/// One value of a YAML file together with its place. `items` holds a list's entries or a block's
/// values; `keys` is as long as `items` in a block and empty otherwise.
struct Node {
  NodeKind kind = NodeKind::null;
  Position position;
  std::string text;  ///< of a scalar, as written but without quotes
  bool quoted = false;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::vector<Key> keys;
  std::vector<Node> items;
  /// A problem was reported at this very value: later checks leave it alone.
  bool refused = false;
};

/// Value of a block's key; nullptr when the node is no block or has no such key.
Node* find(Node& node, std::string_view key);
const Node* find(const Node& node, std::string_view key);

/// As `find`, but nullptr also for a value that was refused already.
const Node* findSound(const Node& node, std::string_view key);

/// The value when the node has that kind and was not refused; nullptr nodes give nullopt.
std::optional<std::string> textOf(const Node* node);
std::optional<bool> booleanOf(const Node* node);
std::optional<unsigned> unsignedOf(const Node* node);  ///< 0 to 4294967295

/// What stands there, for messages: "`4095`", "an empty list", "the keys `netdev` and `pci`".
std::string describe(const Node& node);

/// `text` safe for a terminal, cut to a readable length, between backquotes.
std::string quoteForMessage(std::string_view text);

}  // namespace vfpass::config
