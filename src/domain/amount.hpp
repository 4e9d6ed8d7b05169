#pragma once

#include <cstdint>
#include <optional>
#include <pugixml.hpp>

namespace vfpass::domain {

/// An amount of memory in bytes: the element's text in its unit, KiB by default as in libvirt.
/// nullopt for a null node and for invalid text.
std::optional<std::uint64_t> amountIn(pugi::xml_node element);

/// The same for an attribute, in the unit of the `unit` attribute.
std::optional<std::uint64_t> amountOf(pugi::xml_node element, const char* attribute);

}  // namespace vfpass::domain
