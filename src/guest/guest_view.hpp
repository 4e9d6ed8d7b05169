#pragma once

#include <cstdint>
#include <map>
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
  std::optional<unsigned> mtu;
};

struct GuestGid {
  std::string gid;
  std::optional<int> index;
  std::string type;  ///< as sysfs writes it: `RoCE v2`, `IB/RoCE v1`
};

struct GuestPort {
  int number = 1;
  std::string state;  ///< as sysfs writes it: `4: ACTIVE`
  std::string rate;   ///< `100 Gb/sec (4X EDR)`
  std::string linkLayer;
  std::optional<unsigned> activeMtu;  ///< of RDMA, bytes
  std::optional<int> gidIndex;
  std::vector<GuestGid> gids;
};

/// The GID that is to be used; null where there is none.
const GuestGid* chosenGid(const GuestPort& port);

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
  std::optional<int> index;  ///< as CUDA counts
};

/// Between a network function and a GPU of the guest.
struct GuestDistance {
  std::string nic;
  std::string gpu;
  std::string distance;  ///< in NCCL's words: PIX, PXB, PHB, SYS
};

/// What the guest sees of one PCI function's access control and address translation services.
struct GuestPciServices {
  std::optional<bool> acs;  ///< has the capability; none: cannot be read
  std::optional<bool> ats;
  bool atsEnabled = false;
};

/// A PCI function; its numbers are 0 where the guest does not say.
struct GuestFunction {
  std::string address;
  std::uint64_t vendor = 0;
  std::uint64_t device = 0;
  bool network = false;  ///< of class 02
};

/// What the probe says that the guest has. Every text is the guest's word.
struct GuestView {
  std::vector<GuestNetdev> netdevs;
  std::vector<GuestFunction> withoutDriver;  ///< PCI functions that nothing drives
  bool libibverbs = false;
  std::string libibverbsDetail;
  std::vector<GuestRdmaDevice> rdmaDevices;
  bool libcuda = false;
  std::string libcudaDetail;
  std::optional<int> cudaStatus;    ///< with which CUDA refused; none: it works, or was not asked
  bool peerMemory = false;          ///< nvidia_peermem is loaded
  bool peerMemoryLoadable = false;  ///< or could be
  std::vector<GuestGpu> gpus;
  std::vector<GuestDistance> distances;
  std::map<std::string, GuestPciServices> services;  ///< by PCI address
};

/// Reads `vfpass-probe inventory`. Members that are missing or of another type read as empty: the
/// checks then find nothing, and say so.
GuestView readGuestView(const nlohmann::json& document);

}  // namespace vfpass::guest
