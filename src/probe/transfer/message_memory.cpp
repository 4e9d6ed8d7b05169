#include "transfer/message_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

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

Ring makeRing(std::uint64_t messageBytes, std::uint64_t messages, std::uint64_t limit,
              std::uint64_t offset) {
  constexpr std::uint64_t cacheLine = 64;
  Ring ring;
  ring.messageBytes = messageBytes;
  ring.offset = offset;
  ring.stride = (messageBytes + cacheLine - 1) / cacheLine * cacheLine;
  const std::uint64_t fitting = std::max<std::uint64_t>(1, limit / ring.stride);
  ring.slots = std::clamp<std::uint64_t>(messages, 1, fitting);
  return ring;
}

MessageRange cycleRange(const Ring& ring, std::uint64_t cycle, std::uint64_t count) {
  return {0, cycle * ring.slots, count};
}

HostMemory::HostMemory(std::uint64_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (pages == MAP_FAILED) {
    throw Error(
        "cannot allocate " + std::to_string(bytes) + " bytes of host memory: " + errnoText(errno),
        "use a smaller --memory-limit");
  }
  pages_ = std::span(static_cast<std::byte*>(pages), bytes);
}

HostMemory::~HostMemory() { ::munmap(pages_.data(), pages_.size()); }

std::uint64_t HostMemory::address() const { return std::bit_cast<std::uint64_t>(pages_.data()); }

std::span<std::byte> HostMemory::slot(const Ring& ring, std::uint64_t slot) const {
  return pages_.subspan(ring.startOf(slot), ring.messageBytes);
}

void HostMemory::fill(const Ring& ring, std::uint64_t seed, const MessageRange& range) {
  for (std::uint64_t i = 0; i < range.count; ++i) {
    writePattern(slot(ring, range.firstSlot + i), {seed, range.firstMessage + i});
  }
}

void HostMemory::poison(const Ring& ring, std::uint64_t seed, const MessageRange& range) {
  for (std::uint64_t i = 0; i < range.count; ++i) {
    writePoison(slot(ring, range.firstSlot + i), {seed, range.firstMessage + i});
  }
}

std::vector<SlotDifference> HostMemory::compare(const Ring& ring, std::uint64_t seed,
                                                const MessageRange& range) {
  std::vector<SlotDifference> wrong;
  for (std::uint64_t i = 0; i < range.count; ++i) {
    const std::uint64_t place = range.firstSlot + i;
    if (const auto found = comparePattern(slot(ring, place), {seed, range.firstMessage + i})) {
      wrong.push_back({place, *found});
    }
  }
  return wrong;
}

void HostMemory::read(std::uint64_t offset, std::span<std::byte> into) {
  std::ranges::copy(pages_.subspan(offset, into.size()), into.begin());
}

void HostMemory::write(std::uint64_t offset, std::span<const std::byte> from) {
  std::ranges::copy(from, pages_.subspan(offset, from.size()).begin());
}

}  // namespace vfpass::probe
