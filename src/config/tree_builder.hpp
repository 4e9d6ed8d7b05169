#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "located_tree.hpp"
#include "problem_list.hpp"
#include "text_checks.hpp"

namespace vfpass::config {

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

}  // namespace vfpass::config
