#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace vfpass {

/// Mode of a PF's embedded switch: it switches by itself (legacy), or by rules that the host loads.
enum class EswitchMode { legacy, switchdev };

std::string_view toString(EswitchMode mode);
std::optional<EswitchMode> parseEswitchMode(std::string_view name);

/// The settings of a PF's netdev that host.yaml controls.
struct LinkSettings {
  unsigned mtu = 0;  ///< bytes
  bool up = false;   ///< administratively up (IFF_UP), regardless of carrier

  auto operator<=>(const LinkSettings&) const = default;
};

/// Current values of the PF settings that host.yaml controls, other than VFs.
struct PfSettings {
  std::optional<EswitchMode> eswitchMode;  ///< empty: not observable
  std::optional<LinkSettings> link;        ///< empty: the PF has no netdev, or not observable

  auto operator<=>(const PfSettings&) const = default;
};

}  // namespace vfpass
