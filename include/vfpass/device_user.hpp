#pragma once

#include <string>

#include "vfpass/pci_address.hpp"

namespace vfpass {

/// A domain or libvirt network whose definition names a VF, which need not run and which vfpass
/// need not know otherwise; or a network namespace with the VF's netdev.
struct DeviceUser {
  enum class Kind {
    domain,      ///< names the VF in its XML
    network,     ///< lists the VF in its pool
    pfsNetwork,  ///< assigns any VF of the PF
    elsewhere,   ///< a container, or another user of a network namespace that has its netdev
  };

  PciAddress device;
  Kind kind = Kind::domain;
  std::string name;

  bool operator==(const DeviceUser&) const = default;
};

}  // namespace vfpass
