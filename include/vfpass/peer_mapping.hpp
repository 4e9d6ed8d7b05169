#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass {

/// The VFIO backend that QEMU uses for a guest's devices and memory.
enum class VfioBackend {
  container,  ///< a VFIO container of type 1 (vfio_iommu_type1): `/dev/vfio/12`
  iommufd     ///< an address space of iommufd: `/dev/vfio/devices/vfio3`
};

/// `type1`, `iommufd`.
constexpr std::string_view toString(VfioBackend backend) {
  return backend == VfioBackend::container ? "type1" : "iommufd";
}

/// Whether VFIO maps the BARs of a guest's devices for peer-to-peer access.
struct PeerMapping {
  std::string domainName;
  Uuid domain;
  VfioBackend backend = VfioBackend::container;
  bool running = false;          ///< observed in the running QEMU; false: taken from the domain XML
  std::optional<bool> possible;  ///< nullopt: kernel or QEMU version unknown
  std::string reason;
  std::string remedy;      ///< empty when possible
  bool nextStart = false;  ///< not now, but from the domain's next start on
};

/// What makes a domain start with iommufd. On a kernel without it libvirt refuses the start: it
/// cannot open /dev/vfio/devices/vfio1.
struct IommufdUse {
  std::string domainName;
  std::string what;  ///< `iommu-backend: iommufd`, `the domain has <iommufd enabled='yes'/>`
  std::string remedy;
};

}  // namespace vfpass
