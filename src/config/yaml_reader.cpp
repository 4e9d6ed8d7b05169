#include "yaml_reader.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace vfpass::config {
namespace {

/// Thrown through the parser to stop reading: the file exceeds a limit, or continues after its
/// document.
struct StopReading {};

/// Builds a Node tree from yaml-cpp's events. YAML::Node would lose duplicate keys, anchors and the
/// difference between `1` and `"1"`, and shares nodes between aliases.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, const LineIndex& lines, ProblemList& problems)
      : text_(text), lines_(lines), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

  std::optional<Node> takeRoot() { return std::move(root_); }

  /// Position of the innermost `[` or `{` that is still open.
  [[nodiscard]] std::optional<Position> openBracket() const;

 private:
  struct Frame {
    Node node;
    int offset = 0;
    std::optional<Key> key;  ///< of the next value
    bool keyDropped = false;
    std::map<std::string, Position> seen;
  };

  Node start(const YAML::Mark& mark, NodeKind kind);
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, NodeKind kind);
  void close();
  void place(Node node);
  void placeKey(Frame& frame, Node& node);
  void placeValue(Frame& frame, Node node);
  void refuseProperties(Node& node, const YAML::Mark& mark, const std::string& tag,
                        YAML::anchor_t anchor);
  void checkScalar(Node& node, const YAML::Mark& mark);
  [[nodiscard]] bool awaitsKey() const;
  [[nodiscard]] char characterAt(int offset) const;
  [[nodiscard]] bool quoteIsClosed(int offset) const;

  const std::string& text_;
  const LineIndex& lines_;
  ProblemList& problems_;
  std::vector<Frame> frames_;
  std::optional<Node> root_;
  std::size_t count_ = 0;
  bool started_ = false;
};

// The format itself needs 5 levels; a mapping of 128 VFs with every key has about 6,000 values.
constexpr std::size_t deepest = 16;
constexpr std::size_t mostValues = 20000;
// std::regex recurses once per character; NCCL's longest setting has 1,023 characters.
constexpr std::size_t longestScalar = 1024;

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
  if (node.text.size() > longestScalar) {
    problems_.refuse(node, "expected at most " + std::to_string(longestScalar) +
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

// yaml-cpp's messages and our replacements.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> phrases{{
    {"illegal map value", "unexpected `:`: no value can begin here"},
    {"illegal map key", "unexpected `?` or key: no key can begin here"},
    {"end of map not found", "this line does not belong to the block of keys above it"},
    {"end of sequence not found", "this line does not belong to the list above it"},
    {"unknown token", "this character cannot begin a value"},
    {"the referenced anchor is not defined", "aliases (`*name`) are not accepted"},
    {"illegal block entry", "unexpected `-`: no list can begin here"},
}};

bool isIndentedByTab(const std::string& text, const YAML::Mark& mark) {
  std::size_t at = std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text.size());
  while (at > 0 && text[at - 1] != '\n') {
    --at;
  }
  const std::size_t end = text.find_first_not_of(" \t", at);
  return text.substr(at, end - at).find('\t') != std::string::npos;
}

void reportSyntax(const YAML::Exception& error, const std::string& text, const LineIndex& lines,
                  const TreeBuilder& builder, ProblemList& problems) {
  if (error.msg.find("flow not found") != std::string::npos && builder.openBracket()) {
    problems.add(*builder.openBracket(), "this bracket is never closed");
    return;
  }
  std::string message = "invalid YAML: " + error.msg;
  for (const auto& [theirs, ours] : phrases) {
    if (error.msg == theirs) {
      message = ours;
    }
  }
  problems.add(lines.positionOf(error.mark.pos), message,
               isIndentedByTab(text, error.mark) ? "indent with spaces, not tabs"
                                                 : "check quotes, brackets and indentation");
}

bool isBlank(const std::optional<Node>& root) {
  return !root || (root->kind == NodeKind::null && !root->refused);
}

}  // namespace

std::optional<Node> readYaml(const std::string& text, ProblemList& problems) {
  const LineIndex lines(text);
  if (const auto fault = checkFileText(text)) {
    problems.add(lines.positionOf(static_cast<long>(fault->offset)), fault->message, fault->hint);
    return std::nullopt;
  }
  TreeBuilder builder(text, lines, problems);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    reportSyntax(error, text, lines, builder, problems);
    return std::nullopt;
  } catch (const StopReading&) {
    return std::nullopt;
  }
  auto root = builder.takeRoot();
  if (isBlank(root)) {
    problems.add({}, "the file is empty", "begin it with `version: 1`");
    return std::nullopt;
  }
  return root;
}

}  // namespace vfpass::config
