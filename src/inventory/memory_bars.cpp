#include "memory_bars.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "vfpass/base/text.hpp"

namespace vfpass::inventory {
namespace {

// include/linux/ioport.h
constexpr std::uint64_t memoryResource = 0x200;
constexpr std::uint64_t prefetchableResource = 0x2000;
constexpr std::uint64_t wideResource = 0x100000;

// include/linux/pci.h: six BARs, the ROM, then the six BARs of the VFs.
constexpr std::size_t firstVfBar = 7;
constexpr std::size_t barCount = 6;

constexpr std::uint64_t largestBar = 1ULL << 52U;

std::optional<std::uint64_t> hexNumber(std::string_view& text) {
  text = trim(text);
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(end);
  return word.starts_with("0x") ? parseNumber(word.substr(2), 16) : std::nullopt;
}

std::optional<MemoryBar> readLine(std::string_view line) {
  const auto begin = hexNumber(line);
  const auto end = hexNumber(line);
  const auto flags = hexNumber(line);
  if (!begin || !end || !flags || (*flags & memoryResource) == 0 || *end <= *begin ||
      *end - *begin >= largestBar) {
    return std::nullopt;
  }
  return MemoryBar{*end - *begin + 1, (*flags & wideResource) != 0,
                   (*flags & prefetchableResource) != 0};
}

}  // namespace

std::vector<MemoryBar> memoryBars(std::string_view resource, std::size_t first, std::size_t count) {
  const auto lines = splitLines(resource);
  std::vector<MemoryBar> bars;
  for (std::size_t i = first; i < std::min(lines.size(), first + count); ++i) {
    if (const auto bar = readLine(lines[i])) {
      bars.push_back(*bar);
    }
  }
  return bars;
}

std::vector<MemoryBar> vfMemoryBars(std::string_view resource, unsigned totalVfs) {
  if (totalVfs == 0) {
    return {};
  }
  auto bars = memoryBars(resource, firstVfBar, barCount);
  for (MemoryBar& bar : bars) {
    bar.bytes /= totalVfs;
  }
  std::erase_if(bars, [](const MemoryBar& bar) { return bar.bytes == 0; });
  return bars;
}

}  // namespace vfpass::inventory
