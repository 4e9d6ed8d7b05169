#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass {

/// The element of a domain's XML that a setting's elements are children of.
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

/// As the metadata and the database spell it: the element's name, `pcie-root` for the controller.
std::string_view toString(EditPlace place);
std::optional<EditPlace> parseEditPlace(std::string_view name);

/// What one domain setting adds to a domain's XML beside devices. Recorded with the leases, so that
/// a detach finds the same elements again; those that somebody has changed since are left alone.
struct DomainEdit {
  std::string setting;  ///< its name: `hard-limit`, ...
  EditPlace place = EditPlace::memtune;
  /// Neighbours in this order, each on one line, with values as libvirt formats them: libvirt
  /// rewrites the XML, and what reads differently afterwards would look changed.
  std::vector<std::string> elements;

  auto operator<=>(const DomainEdit&) const = default;
};

}  // namespace vfpass
