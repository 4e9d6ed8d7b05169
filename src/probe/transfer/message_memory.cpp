#include "transfer/message_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

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
