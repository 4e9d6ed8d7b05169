#pragma once

#include <cstdint>
#include <optional>
#include <pugixml.hpp>

namespace vfpass::domain {

/// An amount of memory in bytes: the element's text in its unit, libvirt's KiB without one. nullopt
/// for a null node and for what makes no sense.
std::optional<std::uint64_t> amountIn(pugi::xml_node element);

/// The same for an attribute beside a `unit` attribute.
std::optional<std::uint64_t> amountOf(pugi::xml_node element, const char* attribute);

}  // namespace vfpass::domain
