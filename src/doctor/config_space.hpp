#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfpass::doctor {

/// Access Control Services of a port: seven bits, as the kernel's `pci=config_acs=` counts them
/// (bit 0 source validation, 1 translation blocking, 2 request redirect, 3 completion redirect,
/// 4 upstream forwarding, 5 egress control, 6 direct translated peer-to-peer).
struct Acs {
  unsigned capable = 0;
  unsigned enabled = 0;
};

/// All of a function's configuration space is visible: to others than root only its first 64 bytes
/// are, and devices on a plain PCI bus have 256.
bool hasExtendedSpace(std::string_view config);

/// nullopt: the function has no such capability.
std::optional<Acs> acsOf(std::string_view config);

bool hasAts(std::string_view config);

/// `0011101`, bit 6 first: the notation of `pci=config_acs=`.
std::string acsText(unsigned bits);

/// Do the bits agree with a pattern such as `1x111x1`? x is any.
bool matchesAcs(unsigned bits, std::string_view pattern);

}  // namespace vfpass::doctor
