#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string_view>

#include "vfpass/guest_tree.hpp"

namespace vfpass::domain {

/// A number up to 255; nullopt for anything else.
std::optional<unsigned> smallNumber(std::string_view text);

/// A `<controller type='pci'>` with this index. Values that make no sense are left out.
PciController readController(pugi::xml_node device, unsigned index);

}  // namespace vfpass::domain
