#pragma once

#include <string>
#include <vector>

#include "located_tree.hpp"
#include "vfpass/config/configuration.hpp"

namespace vfpass::config {

/// Gathers the mistakes of one file. Bounded, because the file may be hostile.
class ProblemList {
 public:
  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  void add(const Position& position, const std::string& message, const std::string& hint = {});

  /// Reports a value and marks it, so that one mistake gives one message.
  void refuse(Node& node, const std::string& message, const std::string& hint = {});

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  /// Further problems are only counted: no need to find good words for them.
  [[nodiscard]] bool full() const { return problems_.size() >= most_; }
  [[nodiscard]] SourcePlace place(const Position& position) const;

  /// Hands out all problems by line; says so when some were left out.
  std::vector<Problem> take();

 private:
  static constexpr std::size_t most_ = 100;

  std::string file_;
  std::vector<Problem> problems_;
  std::size_t leftOut_ = 0;
};

/// "did you mean `x`?", or an empty hint when nothing is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// By file, line and column.
void sortByPlace(std::vector<Problem>& problems);

}  // namespace vfpass::config
