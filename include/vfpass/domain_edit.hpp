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
  qemuOverride      ///< libvirt's overrides of device properties
};

/// The spelling in metadata and database: the element's name; `pcie-root` for the controller.
std::string_view toString(EditPlace place);
std::optional<EditPlace> parseEditPlace(std::string_view name);

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

}  // namespace vfpass
