#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string_view>

#include "vfpass/guest_tree.hpp"

namespace vfpass::domain {

/// Parses a number of at most 255; nullopt otherwise.
std::optional<unsigned> smallNumber(std::string_view text);

/// Reads a `<controller type='pci'>` with this index. Leaves out invalid values.
PciController readController(pugi::xml_node device, unsigned index);

}  // namespace vfpass::domain
