#include "fuzz/mutator.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace vfpass::fuzz {
namespace {

bool isWordByte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-';
}

// Runs of letters and digits, and values at the limits of integers.
std::vector<std::string> wordsOf(const std::vector<std::string>& inputs) {
  std::vector<std::string> words{"-1",
                                 "0",
                                 "4294967296",
                                 "18446744073709551615",
                                 "1e999",
                                 std::string(4, '\0'),
                                 std::string(4, '\xff')};
  for (const auto& input : inputs) {
    for (auto at = input.begin(); at != input.end();) {
      const auto begin = std::find_if(at, input.end(), isWordByte);
      at = std::find_if_not(begin, input.end(), isWordByte);
      if (begin != at) {
        words.emplace_back(begin, at);
      }
    }
  }
  return words;
}

}  // namespace

Mutator::Mutator(std::vector<std::string> inputs, std::uint64_t seed)
    : m_random(seed), m_inputs(std::move(inputs)), m_words(wordsOf(m_inputs)) {}

// Not std::uniform_int_distribution: its sequence depends on the standard library.
std::size_t Mutator::below(std::size_t limit) { return m_random() % limit; }

const std::string& Mutator::any(const std::vector<std::string>& list) {
  return list[below(list.size())];
}

std::string Mutator::next() {
  std::string text = any(m_inputs);
  for (auto changes = 1 + below(8); changes > 0; --changes) {
    change(text);
  }
  return text;
}

void Mutator::change(std::string& text) {
  switch (below(5)) {
    case 0:
      text.insert(below(text.size() + 1), 1, static_cast<char>(below(256)));
      break;
    case 1:
      text.insert(below(text.size() + 1), any(m_words));
      break;
    case 2:
      remove(text);
      break;
    case 3:
      splice(text);
      break;
    default:
      changeByte(text);
  }
}

void Mutator::changeByte(std::string& text) {
  if (!text.empty()) {
    char& byte = text[below(text.size())];
    const auto bits =
        below(2) == 0 ? below(256) : static_cast<unsigned char>(byte) ^ 1U << below(8);
    byte = static_cast<char>(bits);
  }
}

void Mutator::remove(std::string& text) {
  const auto begin = below(text.size() + 1);
  text.erase(begin, 1 + below(below(2) == 0 ? 4 : 64));
}

// Replaces a part by a part of another input.
void Mutator::splice(std::string& text) {
  constexpr std::size_t longest = 4096;
  const auto& other = any(m_inputs);
  const auto from = below(other.size() + 1);
  const auto part = other.substr(from, below(longest));
  text.replace(below(text.size() + 1), below(2) == 0 ? 0 : part.size(), part);
}

}  // namespace vfpass::fuzz
