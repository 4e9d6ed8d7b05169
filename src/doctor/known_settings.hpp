#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfpass::doctor {

/// A section of a keyfile, a unit or a .link file. Sections of the same name stay separate.
struct IniSection {
  std::string name;  ///< without brackets; empty for the lines before the first section
  std::vector<std::pair<std::string, std::string>> settings;

  [[nodiscard]] bool is(std::string_view other) const;
  /// The last value of a key; empty if there is none.
  [[nodiscard]] std::string value(std::string_view key) const;
};

/// Names are compared without regard to case, because older snapshots have them in lower case.
std::vector<IniSection> readIni(std::string_view text);

/// The first section of this name; null if there is none.
const IniSection* findSection(const std::vector<IniSection>& sections, std::string_view name);

/// The text that readIni reads.
std::string writeIni(const std::vector<IniSection>& sections);

/// What doctor needs of a NetworkManager profile (a keyfile, or an ifcfg file) that sets up VFs.
std::string reducedProfile(std::string_view text);
std::string reducedIfcfg(std::string_view text);

/// What doctor needs of a file or drop-in of systemd-udevd or systemd-networkd that sets up VFs.
std::string reducedNetworkFile(std::string_view text);

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
