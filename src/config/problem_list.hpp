#pragma once

#include <string>
#include <vector>

#include "vfpass/config/configuration.hpp"
#include "yaml_tree.hpp"

namespace vfpass::config {

/// Collects the problems of one file. Their number is limited, because the file may be hostile.
class ProblemList {
 public:
  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  void add(const Position& position, const std::string& message, const std::string& hint = {});

  /// Reports a problem of a value and marks the value, so that it is reported only once.
  void refuse(Node& node, const std::string& message, const std::string& hint = {});

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  /// True if further problems are only counted, so that their hints need not be computed.
  [[nodiscard]] bool full() const { return problems_.size() >= most_; }
  [[nodiscard]] SourcePlace place(const Position& position) const;

  /// Returns all problems sorted by line, and one more with the number of those left out.
  std::vector<Problem> take();

 private:
  static constexpr std::size_t most_ = 100;

  std::string file_;
  std::vector<Problem> problems_;
  std::size_t leftOut_ = 0;
};

/// "did you mean `x`?", or an empty hint if no candidate is similar (closestSpelling()).
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates,
                       std::size_t mostEdits = 3);

/// Sorts by file, line and column.
void sortByPlace(std::vector<Problem>& problems);

}  // namespace vfpass::config
