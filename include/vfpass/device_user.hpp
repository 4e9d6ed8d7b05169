#pragma once

#include <string>

#include "vfpass/pci_address.hpp"

namespace vfpass {

/// A domain or libvirt network whose definition names a VF. It need not run, and vfpass need not
/// know of it otherwise.
struct DeviceUser {
  enum class Kind {
    domain,      ///< names the VF in its XML
    network,     ///< lists the VF in its pool
    pfsNetwork,  ///< assigns any VF of the PF
  };

  PciAddress device;
  Kind kind = Kind::domain;
  std::string name;

  bool operator==(const DeviceUser&) const = default;
};

}  // namespace vfpass
