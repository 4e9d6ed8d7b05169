#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

/// What the kernel shows of a PF's port.
struct PortFacts {
  PciAddress address;
  std::string driver;           ///< empty: none bound
  std::uint32_t classCode = 0;  ///< 24 bits; 0: unknown
  bool netdev = false;
  bool rdmaDevice = false;
  LinkLayer linkLayer = LinkLayer::unknown;
  bool vfFiles = false;              ///< see PhysicalFunction
  std::optional<PciAddress> mainPf;  ///< see PhysicalFunction
};

PortFacts portFactsOf(const PhysicalFunction& pf);

/// Why a PF's VFs cannot be configured. Both are phrases: `has no IPoIB netdev, ...`, `run ...`.
struct PortFault {
  std::string what;
  std::string remedy;
};

/// The kernel sets the attributes of VFs only through their PF's netdev, so a PF without one has a
/// fault, except an InfiniBand PF of OFED, which has files for its VFs. nullopt: no fault.
std::optional<PortFault> faultOfPort(const PortFacts& port);

}  // namespace vfpass
