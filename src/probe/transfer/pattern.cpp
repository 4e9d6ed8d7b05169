#include "transfer/pattern.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vfpass::probe {
namespace {

static_assert(std::endian::native == std::endian::little, "the pattern is stored little-endian");

constexpr std::size_t wordBytes = sizeof(Word);
/// Words to compare before looking for the wrong byte: few enough to stay in the L1 cache.
constexpr std::size_t blockWords = 512;

void writeWords(std::span<std::byte> bytes, const MessagePattern& pattern, Word inversion) {
  const Word key = patternKey(pattern.seed);
  const Word mask = messageMask(pattern.message) ^ inversion;
  const std::size_t words = bytes.size() / wordBytes;
  // memcpy allows any alignment; the compiler turns it into vector stores.
  for (std::size_t index = 0; index < words; ++index) {
    const Word word = patternWord(key, mask, index);
    std::memcpy(bytes.data() + index * wordBytes, &word, wordBytes);
  }
  const Word last = patternWord(key, mask, words);
  std::memcpy(bytes.data() + words * wordBytes, &last, bytes.size() % wordBytes);
}

/// The bits in which any of the words differs.
Word differingBits(const std::byte* bytes, std::size_t first, std::size_t end, Word key,
                   Word mask) {
  Word differing = 0;
  for (std::size_t index = first; index < end; ++index) {
    Word seen = 0;
    std::memcpy(&seen, bytes + index * wordBytes, wordBytes);
    differing |= seen ^ patternWord(key, mask, index);
  }
  return differing;
}

/// Compares byte by byte: for blocks that are known to be wrong, and for the tail.
void countWrong(std::span<const std::byte> bytes, std::size_t first, std::size_t end,
                const MessagePattern& pattern, Difference& found) {
  for (std::size_t offset = first; offset < end; ++offset) {
    if (bytes[offset] == patternByte(pattern, offset)) {
      continue;
    }
    found.offset = found.wrongBytes == 0 ? offset : found.offset;
    ++found.wrongBytes;
  }
}

}  // namespace

void writePattern(std::span<std::byte> bytes, const MessagePattern& pattern) {
  writeWords(bytes, pattern, 0);
}

void writePoison(std::span<std::byte> bytes, const MessagePattern& pattern) {
  writeWords(bytes, pattern, poisonBits);
}

std::optional<Difference> comparePattern(std::span<const std::byte> bytes,
                                         const MessagePattern& pattern) {
  const Word key = patternKey(pattern.seed);
  const Word mask = messageMask(pattern.message);
  const std::size_t words = bytes.size() / wordBytes;
  Difference found;
  for (std::size_t first = 0; first < words; first += blockWords) {
    const std::size_t end = std::min(words, first + blockWords);
    if (differingBits(bytes.data(), first, end, key, mask) != 0) {
      countWrong(bytes, first * wordBytes, end * wordBytes, pattern, found);
    }
  }
  countWrong(bytes, words * wordBytes, bytes.size(), pattern, found);
  return found.wrongBytes == 0 ? std::nullopt : std::optional(found);
}

std::byte patternByte(const MessagePattern& pattern, std::uint64_t offset) {
  const Word word =
      patternWord(patternKey(pattern.seed), messageMask(pattern.message), offset / wordBytes);
  return static_cast<std::byte>(word >> (8 * (offset % wordBytes)));
}

}  // namespace vfpass::probe
