#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfpass/identifiers.hpp"

namespace vfpass {

/// What QEMU puts a guest's devices and memory into.
enum class VfioBackend {
  container,  ///< a VFIO container of type 1 (vfio_iommu_type1): `/dev/vfio/12`
  iommufd     ///< an address space of iommufd: `/dev/vfio/devices/vfio3`
};

/// `type1`, `iommufd`.
std::string_view toString(VfioBackend backend);

/// Whether the devices of a guest can reach each other's BARs, as far as VFIO is concerned.
struct PeerMapping {
  std::string domainName;
  Uuid domain;
  VfioBackend backend = VfioBackend::container;
  bool running = false;          ///< seen in the running QEMU; false: the domain's XML says so
  std::optional<bool> possible;  ///< nullopt: kernel or QEMU is unknown
  std::string reason;
  std::string remedy;  ///< empty when possible
};

}  // namespace vfpass
