#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass {

/// The parent element of a setting's elements in the domain XML.
enum class EditPlace {
  memtune,
  memoryBacking,
  cputune,
  numatune,
  cpu,
  pcieRoot,         ///< the `<controller>` of model pcie-root, in `<devices>`
  qemuCommandline,  ///< libvirt's pass-through to QEMU's command line
  qemuOverride,     ///< libvirt's overrides of device properties
  domain            ///< `<domain>` itself; only for `<iommufd>`
};

/// The spelling in metadata and database: the element's name; `pcie-root` for the controller.
std::string_view toString(EditPlace place);
std::optional<EditPlace> parseEditPlace(std::string_view name);

/// True where the elements bind the guest to memory and CPUs of its host: the guest does not notice
/// them, and libvirt does not compare them when it arrives (virDomainDefCheckABIStabilityFlags).
constexpr bool isHostSide(EditPlace place) {
  return place == EditPlace::memtune || place == EditPlace::cputune || place == EditPlace::numatune;
}

/// The elements, other than devices, that one domain setting adds to the domain XML. Recorded with
/// the leases, so that a detach finds them again; elements that were changed since are left alone.
struct DomainEdit {
  std::string setting;  ///< name of the setting: `hard-limit`, ...
  EditPlace place = EditPlace::memtune;
  /// Adjacent elements in this order, each on one line, formatted as libvirt formats them: libvirt
  /// rewrites the XML, and any other formatting would look like a change afterwards.
  std::vector<std::string> elements;

  auto operator<=>(const DomainEdit&) const = default;
};

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
