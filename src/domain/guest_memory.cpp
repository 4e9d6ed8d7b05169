#include "vfpass/domain/guest_memory.hpp"

#include <array>
#include <limits>

#include "document.hpp"
#include "our_elements.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::domain {
namespace {

// libvirt writes KiB, whatever it was given; the others are for XML that it has not seen yet.
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

std::optional<std::uint64_t> amountIn(pugi::xml_node element) {
  const auto number = parseNumber(trim(element.child_value()));
  for (const Unit& unit : units) {
    if (number && unit.name == attributeText(element, "unit") &&
        *number <= std::numeric_limits<std::uint64_t>::max() / unit.bytes) {
      return *number * unit.bytes;
    }
  }
  return std::nullopt;
}

}  // namespace

GuestMemory guestMemory(std::string_view xml) {
  const Document document(xml);
  GuestMemory memory;
  memory.domain = document.domain().child_value("name");
  memory.bytes = amountIn(document.domain().child("memory")).value_or(0);
  memory.hardLimit = amountIn(document.domain().child("memtune").child("hard_limit"));
  memory.viommu = !document.devices().child("iommu").empty();
  for (const pugi::xml_node device : document.devices().children()) {
    memory.devices += hostAddressElement(device) ? 1 : 0;
  }
  return memory;
}

}  // namespace vfpass::domain
