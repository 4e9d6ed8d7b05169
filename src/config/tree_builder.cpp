#include "tree_builder.hpp"

#include <utility>

#include "plain_scalar.hpp"

namespace vfpass::config {
namespace {

// The format itself needs 5 levels; a mapping of 128 VFs with every key has about 6,000 values.
constexpr std::size_t deepest = 16;
constexpr std::size_t mostValues = 20000;
// std::regex recurses once per character; NCCL's longest setting has 1,023 characters.
constexpr std::size_t longestValue = 1024;

}  // namespace

void TreeBuilder::OnDocumentStart(const YAML::Mark& mark) {
  // To yaml-cpp, content indented less than the document's first line also begins a new document.
  if (std::exchange(started_, true)) {
    problems_.add(lines_.positionOf(mark.pos), "expected the end of the file, found a new document",
                  "write one file for each document, and check the indentation");
    throw StopReading();
  }
}

void TreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  Node node = start(mark, NodeKind::null);
  refuseProperties(node, mark, "?", anchor);
  // yaml-cpp places a missing value at the next token, which is often on the next line.
  if (!frames_.empty() && frames_.back().key &&
      frames_.back().key->position.line != node.position.line) {
    node.position = frames_.back().key->position;
  }
  place(std::move(node));
}

void TreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t) {
  Node node = start(mark, NodeKind::null);
  // yaml-cpp 0.7 accepts even cyclic aliases.
  problems_.refuse(node, "aliases (`*name`) are not accepted", "write the value out");
  place(std::move(node));
}

void TreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& value) {
  Node node = start(mark, NodeKind::text);
  refuseProperties(node, mark, tag, anchor);
  node.quoted = tag != "?";  // yaml-cpp: "?" without quotes, "!" with
  node.text = value;
  checkScalar(node, mark);
  if (!node.quoted && !node.refused && !awaitsKey()) {
    classifyPlainScalar(value, node);
  }
  place(std::move(node));
}

void TreeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                                  YAML::anchor_t anchor, YAML::EmitterStyle::value) {
  open(mark, tag, anchor, NodeKind::list);
}

void TreeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                             YAML::EmitterStyle::value) {
  open(mark, tag, anchor, NodeKind::block);
}

std::optional<Position> TreeBuilder::openBracket() const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    const char first = characterAt(frame->offset);
    if (first == '[' || first == '{') {
      return frame->node.position;
    }
  }
  return std::nullopt;
}

Node TreeBuilder::start(const YAML::Mark& mark, NodeKind kind) {
  Node node;
  node.kind = kind;
  node.position = lines_.positionOf(mark.pos);
  if (++count_ > mostValues) {
    problems_.add(node.position,
                  "the file contains more than " + std::to_string(mostValues) + " values",
                  "write one file for each virtual machine");
    throw StopReading();
  }
  return node;
}

void TreeBuilder::open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       NodeKind kind) {
  Frame frame;
  frame.node = start(mark, kind);
  frame.offset = mark.pos;
  refuseProperties(frame.node, mark, tag, anchor);
  if (frames_.size() >= deepest) {
    problems_.add(frame.node.position,
                  "values are nested more than " + std::to_string(deepest) + " levels deep",
                  "close the brackets, and check the indentation");
    throw StopReading();
  }
  frames_.push_back(std::move(frame));
}

void TreeBuilder::close() {
  Node node = std::move(frames_.back().node);
  frames_.pop_back();
  place(std::move(node));
}

void TreeBuilder::place(Node node) {
  if (frames_.empty()) {
    root_ = std::move(node);
  } else if (frames_.back().node.kind == NodeKind::list) {
    frames_.back().node.items.push_back(std::move(node));
  } else if (awaitsKey()) {
    placeKey(frames_.back(), node);
  } else {
    placeValue(frames_.back(), std::move(node));
  }
}

void TreeBuilder::placeKey(Frame& frame, Node& node) {
  frame.key = Key{node.text, node.position};
  if (node.kind != NodeKind::text) {
    problems_.refuse(node, "expected a key, found " + describe(node));
  } else if (const auto seen = frame.seen.find(node.text); seen != frame.seen.end()) {
    problems_.refuse(node,
                     "the key " + quoteForMessage(node.text) + " is written twice, first in line " +
                         std::to_string(seen->second.line),
                     "remove one of them");
  } else {
    frame.seen.emplace(node.text, node.position);
  }
  frame.keyDropped = node.refused;
}

void TreeBuilder::placeValue(Frame& frame, Node node) {
  if (!frame.keyDropped) {
    frame.node.keys.push_back(*frame.key);
    frame.node.items.push_back(std::move(node));
  }
  frame.key.reset();
}

void TreeBuilder::refuseProperties(Node& node, const YAML::Mark& mark, const std::string& tag,
                                   YAML::anchor_t anchor) {
  if (anchor != 0) {
    problems_.refuse(node, "anchors (`&name`) are not accepted", "write the value out");
  }
  // A lone `!` gives the same tag as quotes; only the text itself distinguishes them.
  if ((tag != "?" && tag != "!") || characterAt(mark.pos) == '!') {
    problems_.refuse(node, "tags (`!name`) are not accepted", "write the value without it");
  }
}

void TreeBuilder::checkScalar(Node& node, const YAML::Mark& mark) {
  if (node.quoted && !quoteIsClosed(mark.pos)) {
    problems_.refuse(node, "the quotation mark is never closed");
    throw StopReading();  // the rest of the file was read as part of this value
  }
  if (node.text.size() > longestValue) {
    problems_.refuse(node, "expected at most " + std::to_string(longestValue) +
                               " bytes in one value, found " + std::to_string(node.text.size()));
    node.text.clear();
  }
  if (const auto fault = checkValueText(node.text)) {
    problems_.refuse(node, fault->message + " in a value", fault->hint);
  }
  if (node.quoted || awaitsKey()) {
    return;
  }
  if (const auto number = ambiguousNumber(node.text)) {
    const bool address = node.text.find(':') != std::string::npos;
    problems_.refuse(
        node,
        "YAML readers differ on " + quoteForMessage(node.text) + ", which looks like " + *number,
        address ? "put it in quotes"
                : "write a plain decimal number, or put it in quotes if it is not a number");
  }
}

bool TreeBuilder::awaitsKey() const {
  return !frames_.empty() && frames_.back().node.kind == NodeKind::block && !frames_.back().key;
}

char TreeBuilder::characterAt(int offset) const {
  const auto at = static_cast<std::size_t>(offset);
  return offset >= 0 && at < text_.size() ? text_[at] : '\0';
}

// yaml-cpp 0.7 accepts the end of the file as the end of a quoted text.
bool TreeBuilder::quoteIsClosed(int offset) const {
  const char quote = characterAt(offset);
  if (quote != '"' && quote != '\'') {
    return true;
  }
  for (auto at = static_cast<std::size_t>(offset) + 1; at < text_.size(); ++at) {
    if (text_[at] == '\\' && quote == '"') {
      ++at;
    } else if (text_[at] == quote) {
      if (quote == '"' || at + 1 >= text_.size() || text_[at + 1] != '\'') {
        return true;
      }
      ++at;  // '' stands for one ' within single quotes
    }
  }
  return false;
}

}  // namespace vfpass::config
