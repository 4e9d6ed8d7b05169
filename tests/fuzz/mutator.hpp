#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace vfpass::fuzz {

/// Changes inputs at random, with the same sequence for the same seed: a simple replacement for
/// libFuzzer in builds that lack it, without feedback from coverage.
class Mutator {
 public:
  /// @param inputs at least one
  Mutator(std::vector<std::string> inputs, std::uint64_t seed);

  /// One of the inputs with one to eight changes. A change inserts at most a word of an input, or
  /// 4095 bytes.
  std::string next();

 private:
  std::size_t below(std::size_t limit);
  const std::string& any(const std::vector<std::string>& list);
  void change(std::string& text);
  void changeByte(std::string& text);
  void remove(std::string& text);
  void splice(std::string& text);

  std::mt19937_64 m_random;
  std::vector<std::string> m_inputs;
  std::vector<std::string> m_words;
};

}  // namespace vfpass::fuzz
