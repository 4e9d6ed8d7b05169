#pragma once

#include <string>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass {

/// The host PCI functions that a libvirt network assigns to its domains: the listed functions, and
/// all VFs of the PFs with these netdevs.
struct NetworkPool {
  std::string network;
  std::vector<PciAddress> devices;
  std::vector<std::string> pfNetdevs;

  bool operator==(const NetworkPool&) const = default;
};

}  // namespace vfpass
