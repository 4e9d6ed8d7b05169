#include "vfpass/base/pci_resource.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

PciResource resourceIn(std::string_view line) {
  std::array<std::uint64_t, 3> numbers{};
  for (std::uint64_t& number : numbers) {
    line = trim(line);
    const auto word = line.substr(0, line.find(' '));
    const auto value = word.starts_with("0x") ? parseNumber(word.substr(2), 16) : std::nullopt;
    if (!value) {
      return {};
    }
    number = *value;
    line.remove_prefix(word.size());
  }
  const auto [first, last, flags] = numbers;
  return {first, last > first ? last - first + 1 : 0, flags};
}

}  // namespace

std::vector<PciResource> readPciResources(std::string_view text) {
  std::vector<PciResource> resources;
  std::ranges::transform(splitLines(text), std::back_inserter(resources), resourceIn);
  return resources;
}

}  // namespace vfpass
