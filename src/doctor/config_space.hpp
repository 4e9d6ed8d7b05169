#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::doctor {

/// Access Control Services of a port: seven bits, numbered as in the kernel's `pci=config_acs=`
/// (bit 0 source validation, 1 translation blocking, 2 request redirect, 3 completion redirect, 4
/// upstream forwarding, 5 egress control, 6 direct translated peer-to-peer).
struct Acs {
  unsigned capable = 0;
  unsigned enabled = 0;
};

/// The first `bytes` of a function's configuration space; empty if it cannot be read.
std::string readConfig(const host::Root& root, const Device& function, std::size_t bytes = 4096);

/// nullopt if the function has no ACS capability.
std::optional<Acs> acsOf(std::string_view config);

/// Whether a bridge with this configuration space has conventional PCI on one side: by the type in
/// its PCI Express capability, or because it has neither one nor an extended space. False if only
/// the header was read.
bool isConventionalBridge(std::string_view config);

bool hasAts(std::string_view config);

/// The Enable bit of the function's ATS capability, which a VF has of its own; nullopt without the
/// capability.
std::optional<bool> atsEnabled(std::string_view config);

/// Whether the function may start requests of its own (Bus Master Enable). VFIO clears the bit when
/// the last user closes the function (vfio_pci_core_disable).
bool isBusMaster(std::string_view config);

/// The size in bytes of the largest BAR that the function's Resizable BAR capability offers;
/// nullopt if it has none, so that its BARs have a fixed size.
std::optional<std::uint64_t> largestResizableBar(std::string_view config);

/// `0011101`, bit 6 first: the notation of `pci=config_acs=`.
std::string acsText(unsigned bits);

/// Whether the bits match a pattern such as `1x111x1`; x matches both values.
bool matchesAcs(unsigned bits, std::string_view pattern);

}  // namespace vfpass::doctor
