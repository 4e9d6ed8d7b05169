#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/host/link_settings.hpp"

namespace vfpass::host {

/// Query for the ID of the generic netlink family devlink on this kernel.
std::string devlinkFamilyQuery();
std::optional<std::uint16_t> parseFamily(std::string_view bytes);

std::string eswitchQuery(std::uint16_t family, const PciAddress& pf);
std::string eswitchChange(std::uint16_t family, const PciAddress& pf, EswitchMode mode);
/// Nullopt when it is another message, names another device, or has no known mode.
std::optional<EswitchMode> parseEswitchReply(std::string_view bytes, std::uint16_t family,
                                             const PciAddress& pf);

}  // namespace vfpass::host
