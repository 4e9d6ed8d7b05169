#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/device.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// How much is read of a device's netdevs and RDMA devices.
enum class Ports {
  none,
  names,   ///< of both; sorted
  netdevs  ///< all of a netdev, uplink first; names of RDMA devices
};

/// What a reader wants to know of a device. Each costs system calls: the hook has time for few, and
/// there can be a thousand VFs.
struct WantedFacts {
  bool driver = true;
  bool ids = false;        ///< vendor, device and class
  bool subsystem = false;  ///< its vendor and device
  bool numaNode = false;
  bool iommuGroup = false;  ///< without its other members
  Ports ports = Ports::none;
  bool linkLayer = false;  ///< of these ports
};

/// Reads what is wanted from the device's directory; the rest of `device` stays.
void readDevice(const Folder& folder, const WantedFacts& wanted, Device& device);

/// A VF of a PF according to its `virtfnN` link.
struct VfLink {
  unsigned index = 0;
  PciAddress address;
};

/// VFs of a PF, by index. Read from the links in its directory, never from `sriov_numvfs`: reading
/// that file takes the device's lock and blocks forever while a removal hangs.
std::vector<VfLink> readVfLinks(const Folder& folder);

/// A 16-bit field of the SR-IOV capability.
unsigned readSriovField(const Folder& folder, const std::string& file);

/// The kernel's names: InfiniBand, Ethernet.
LinkLayer parseLinkLayer(std::string_view text);

}  // namespace vfpass::host
