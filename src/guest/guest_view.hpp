#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vfpass::guest {

struct GuestNetdev {
  std::string name;
  std::string mac;
  std::string state;
  std::string pci;
  std::string driver;
};

struct GuestPort {
  int number = 1;
  std::string state;  ///< as sysfs writes it: `4: ACTIVE`
  std::string rate;   ///< `100 Gb/sec (4X EDR)`
  std::optional<int> gidIndex;
  std::vector<std::string> gids;
};

struct GuestRdmaDevice {
  std::string name;
  std::string nodeGuid;
  std::string pci;
  std::string parent;  ///< the netdev of a software device (SoftRoCE)
  bool opens = false;
  std::string whyNot;
  std::vector<GuestPort> ports;
};

struct GuestGpu {
  std::string name;  ///< empty: only PCI knows it, no driver does
  std::string pci;
  bool dmaBuf = false;
};

/// What the probe says that the guest has. Every text is the guest's word.
struct GuestView {
  std::vector<GuestNetdev> netdevs;
  std::vector<std::string> withoutDriver;  ///< PCI network functions and VFs that nothing drives
  bool libibverbs = false;
  std::string libibverbsDetail;
  std::vector<GuestRdmaDevice> rdmaDevices;
  bool libcuda = false;
  std::string libcudaDetail;
  bool peerMemory = false;  ///< nvidia_peermem is loaded
  std::vector<GuestGpu> gpus;
};

/// Reads `vfpass-probe inventory`. Members that are missing or of another type read as empty: the
/// checks then find nothing, and say so.
GuestView readGuestView(const nlohmann::json& document);

}  // namespace vfpass::guest
