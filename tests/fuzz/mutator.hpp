#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace vfpass::fuzz {

/// Changes inputs at random, with the same sequence in every run: a simple replacement for
/// libFuzzer in builds that lack it, without feedback from coverage.
class Mutator {
 public:
  /// @param inputs at least one
  explicit Mutator(std::vector<std::string> inputs);

  /// One of the inputs with one to eight changes.
  std::string next();

 private:
  std::size_t below(std::size_t limit);
  const std::string& any(const std::vector<std::string>& list);
  void change(std::string& text);
  void changeByte(std::string& text);
  void remove(std::string& text);
  void splice(std::string& text);

  std::mt19937_64 m_random{1};
  std::vector<std::string> m_inputs;
  std::vector<std::string> m_words;
};

}  // namespace vfpass::fuzz
