#pragma once

#include <optional>
#include <string>

#include "vfpass/pci_address.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass {

/// What one place in a file sets on a PF, or on one of its VFs, when the host boots or the PF
/// appears. Texts come from the file: not printable.
struct BootPolicy {
  std::string file;                 ///< absolute path
  std::string manager;              ///< `netplan`, `NetworkManager`, `systemd`, `script`
  std::optional<PciAddress> pf;     ///< nullopt: the file does not say which PF
  std::optional<unsigned> vf;       ///< nullopt: the PF itself
  std::string text;                 ///< the setting, as in the file: `VLANId=100`
  std::string remedy;               ///< how to end it; may be empty
  VfSettings settings;              ///< of the VF
  std::optional<unsigned> vfCount;  ///< of the PF
  std::optional<std::string> eswitchMode;
  std::optional<unsigned> mtu;
  std::optional<bool> probesVfs;
};

}  // namespace vfpass
