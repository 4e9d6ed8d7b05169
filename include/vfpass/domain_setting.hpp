#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/domain_edit.hpp"

namespace vfpass {

enum class SettingStanding {
  proposed,       ///< vfpass can make it
  manual,         ///< only the administrator can
  administrators  ///< the administrator has chosen another value, which stays
};

std::string_view toString(SettingStanding standing);  ///< proposed, manual, kept

/// One thing beside devices that a domain needs for its devices, or that makes them faster, and
/// that it does not have.
struct DomainSetting {
  std::string name;    ///< `hard-limit`, ...
  std::string what;    ///< the value that follows from the devices, or what is to be done
  std::string reason;  ///< with the figures that it follows from
  SettingStanding standing = SettingStanding::proposed;
  std::optional<DomainEdit> edit = std::nullopt;  ///< of a proposed one

  auto operator<=>(const DomainSetting&) const = default;
};

}  // namespace vfpass
