#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_edit.hpp"

namespace vfpass {

enum class SettingStanding {
  proposed,       ///< vfpass can apply it
  manual,         ///< only the administrator can apply it
  administrators  ///< the administrator has chosen another value, which is kept
};

std::string_view toString(SettingStanding standing);  ///< proposed, manual, kept

/// A setting, other than a device, that a domain lacks although its devices need it or are faster
/// with it.
struct DomainSetting {
  std::string name;    ///< `hard-limit`, ...
  std::string what;    ///< the value derived from the devices, or the action to take
  std::string reason;  ///< with the figures behind the value
  SettingStanding standing = SettingStanding::proposed;
  std::optional<DomainEdit> edit = std::nullopt;  ///< only of a proposed setting

  auto operator<=>(const DomainSetting&) const = default;
};

}  // namespace vfpass
