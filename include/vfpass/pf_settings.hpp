#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace vfpass {

/// Who switches between a PF's VFs: the card alone, or rules that the host loads into it.
enum class EswitchMode { legacy, switchdev };

std::string_view toString(EswitchMode mode);
std::optional<EswitchMode> parseEswitchMode(std::string_view name);

/// What host.yaml can ask of a PF's netdev.
struct LinkSettings {
  unsigned mtu = 0;  ///< bytes
  bool up = false;   ///< administratively (IFF_UP), whatever the cable says

  auto operator<=>(const LinkSettings&) const = default;
};

/// What host.yaml sets on a PF beside its VFs, as the kernel has it now.
struct PfSettings {
  std::optional<EswitchMode> eswitchMode;  ///< empty: not observable
  std::optional<LinkSettings> link;        ///< empty: the PF has no netdev, or not observable

  auto operator<=>(const PfSettings&) const = default;
};

}  // namespace vfpass
