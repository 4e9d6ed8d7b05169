#include "amount.hpp"

#include <array>
#include <limits>
#include <string_view>

#include "document.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

// libvirt always writes KiB; the other units occur in XML that has not been through libvirt.
struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array units{Unit{"", 1ULL << 10U},      Unit{"KiB", 1ULL << 10U},
                           Unit{"k", 1ULL << 10U},     Unit{"MiB", 1ULL << 20U},
                           Unit{"M", 1ULL << 20U},     Unit{"GiB", 1ULL << 30U},
                           Unit{"G", 1ULL << 30U},     Unit{"TiB", 1ULL << 40U},
                           Unit{"T", 1ULL << 40U},     Unit{"b", 1},
                           Unit{"bytes", 1},           Unit{"KB", 1000},
                           Unit{"MB", 1000ULL * 1000}, Unit{"GB", 1000ULL * 1000 * 1000}};

std::optional<std::uint64_t> inUnit(std::string_view text, std::string_view unit) {
  const auto number = parseNumber(trim(text));
  for (const Unit& each : units) {
    if (number && each.name == unit &&
        *number <= std::numeric_limits<std::uint64_t>::max() / each.bytes) {
      return *number * each.bytes;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> amountIn(pugi::xml_node element) {
  return inUnit(element.child_value(), attributeText(element, "unit"));
}

std::optional<std::uint64_t> amountOf(pugi::xml_node element, const char* attribute) {
  return inUnit(attributeText(element, attribute), attributeText(element, "unit"));
}

}  // namespace vfpass::domain
