#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// One value of a YAML file and its place. `items` contains the entries of a list or the values of
/// a block; `keys` is as long as `items` in a block and empty otherwise.
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
  /// A problem was reported for this value; later checks skip it.
  bool refused = false;
};

/// Value of a block's key; nullptr if the node is not a block or has no such key.
Node* find(Node& node, std::string_view key);
const Node* find(const Node& node, std::string_view key);

/// Like `find`, but nullptr also for a value that was refused.
Node* findSound(Node& node, std::string_view key);

/// Entries of a list; empty if the list is missing or was refused.
std::span<Node> entriesOf(Node& node, std::string_view key);

/// The value if the node is of that kind and was not refused; nullopt otherwise, also for nullptr.
std::optional<std::string> textOf(const Node* node);
std::optional<bool> booleanOf(const Node* node);
std::optional<unsigned> unsignedOf(const Node* node);  ///< 0 to 4294967295

/// Description of the value for messages: "`4095`", "an empty list", "the keys `netdev` and `pci`".
std::string describe(const Node& node);

/// `text` in backquotes, with control characters escaped, cut to a readable length.
std::string quoteForMessage(std::string_view text);

}  // namespace vfpass::config
