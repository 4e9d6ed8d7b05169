#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vfpass::doctor {

/// A device below `ethernets:` for which netplan creates or configures VFs.
struct NetplanDevice {
  std::string id;  ///< empty: a setting that is not below a device
  /// `virtual-function-count`, `embedded-switch-mode`, `delay-virtual-functions-rebind`, and `link`
  /// of a VF, by which netplan creates VFs of the named PF (netplan-yaml(5)).
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Reads a file of netplan, or one that reducedNetplan has reduced. nullopt if it is not valid YAML
/// and names one of the settings.
std::optional<std::vector<NetplanDevice>> readNetplan(const std::string& text);

/// These devices and settings only, as YAML. Files of netplan can contain passwords.
std::string reducedNetplan(const std::string& text);

}  // namespace vfpass::doctor
