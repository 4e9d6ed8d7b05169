#include "problem_list.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "vfpass/base/text.hpp"

namespace vfpass::config {

std::string toString(const Problem& problem) {
  std::string text = toString(problem.place) + ": " + problem.message;
  if (!problem.hint.empty()) {
    text += "; " + problem.hint;
  }
  return printable(text);  // file names can contain terminal escape sequences
}

std::vector<Mistake> mistakesOf(const std::vector<Problem>& problems) {
  std::vector<Mistake> mistakes;
  for (const auto& [place, message, hint] : problems) {
    mistakes.push_back({place.file, place.line, place.column, message, hint});
  }
  return mistakes;
}

void ProblemList::add(const Position& position, const std::string& message,
                      const std::string& hint) {
  if (full()) {
    ++leftOut_;
    return;
  }
  problems_.push_back({place(position), message, hint});
}

void ProblemList::refuse(Node& node, const std::string& message, const std::string& hint) {
  if (!std::exchange(node.refused, true)) {
    add(node.position, message, hint);
  }
}

SourcePlace ProblemList::place(const Position& position) const {
  return {file_, position.line, position.column};
}

std::vector<Problem> ProblemList::take() {
  sortByPlace(problems_);
  if (leftOut_ > 0) {
    problems_.push_back(
        {problems_.back().place, std::to_string(leftOut_) + " further problems not shown", {}});
  }
  return std::exchange(problems_, {});
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates,
                       std::size_t mostEdits) {
  // Longer words are not misspellings, and the cost of the edit distance grows with the length.
  if (word.size() > 64) {
    return {};
  }
  const auto near = closestSpelling(word, candidates, mostEdits);
  return near ? "did you mean `" + *near + "`?" : std::string{};
}

void sortByPlace(std::vector<Problem>& problems) {
  std::ranges::stable_sort(problems, [](const Problem& left, const Problem& right) {
    return std::tie(left.place.file, left.place.line, left.place.column) <
           std::tie(right.place.file, right.place.line, right.place.column);
  });
}

}  // namespace vfpass::config
