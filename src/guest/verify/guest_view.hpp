#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/cuda_problem.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::verify {

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
  std::string type;         ///< as sysfs writes it: `RoCE v2`, `IB/RoCE v1`
  std::string netdev = {};  ///< that has the address; empty: not reported, or InfiniBand
};

struct GuestPort {
  int number = 1;
  std::string state;  ///< as sysfs writes it: `4: ACTIVE`
  std::string rate;   ///< `100 Gb/sec (4X EDR)`
  std::string linkLayer;
  std::optional<unsigned> activeMtu;  ///< of RDMA, bytes
  std::optional<int> gidIndex;
  std::vector<GuestGid> gids;
  std::optional<unsigned> localId;        ///< LID; nullopt: not reported
  std::optional<unsigned> managerId;      ///< the subnet manager's LID
  std::vector<std::uint16_t> partitions;  ///< P_Keys, at most 256; empty also if not reported
  bool partitionsReported = false;
  std::map<std::string, std::uint64_t> counters;  ///< by name; empty also if not reported
  std::vector<std::string> ipAddresses;  ///< of the port's interfaces, `10.99.0.1/24`; for rdma_cm
};

/// The GID that the probe selected; null when there is none.
const GuestGid* chosenGid(const GuestPort& port);

struct GuestRdmaDevice {
  std::string name;
  std::string nodeGuid;
  std::string pci;
  std::string parent;  ///< the netdev of a software device (SoftRoCE)
  bool opens = false;
  std::string whyNot;
  std::optional<bool> dmaBuf = {};  ///< registers DMA-BUF memory; nullopt: unknown
  std::string whyNoDmaBuf = {};
  std::vector<GuestPort> ports;
};

/// A base address register that exists.
struct GuestBar {
  int number = 0;
  std::uint64_t bytes = 0;  ///< 0: unknown, the guest's kernel found no space for it
  bool assigned = false;
};

struct GuestGpu {
  std::string name;  ///< empty: no driver reports it, only PCI
  std::string pci;
  bool dmaBuf = false;
  std::optional<int> index;         ///< CUDA device index
  std::optional<bool> gpuDirect;    ///< GPUDirect RDMA; nullopt: the driver does not say
  bool mig = false;                 ///< MIG is enabled
  std::optional<int> migInstances;  ///< nullopt: the GPU has no MIG, or NVML does not tell
  std::optional<std::uint64_t> memoryBytes = {};  ///< as CUDA reports it
  std::vector<GuestBar> bars = {};                ///< at most 6; empty: an older probe
};

/// The distance between a network function and a GPU in the guest.
struct GuestDistance {
  std::string nic;
  std::string gpu;
  std::string distance;  ///< in NCCL's terms: PIX, PXB, PHB, SYS
};

/// Access control and address translation services of one PCI function, as seen in the guest.
struct GuestPciServices {
  std::optional<bool> acs;  ///< has the capability; nullopt: cannot be read
  std::optional<bool> ats;
  bool atsEnabled = false;
  std::optional<PciePackets> packets = {};  ///< nullopt: not reported
};

/// A PCI function; IDs that the guest does not report are 0.
struct GuestFunction {
  std::string address;
  std::uint64_t vendor = 0;
  std::uint64_t device = 0;
  bool network = false;  ///< class 02
};

/// The place of a PCI function in the guest's tree: the bridges from the root bus down to it, then
/// the function itself, in the guest's own bus numbers.
using GuestPath = std::vector<PciAddress>;

/// What /etc/nccl.conf sets.
struct GuestNccl {
  std::optional<unsigned> gidIndex;  ///< nullopt: not set
};

/// A limit of locked memory (RLIMIT_MEMLOCK) in bytes; UINT64_MAX: none. nullopt: not set.
struct GuestMemoryLimit {
  std::optional<std::uint64_t> soft;
  std::optional<std::uint64_t> hard;
  std::string file;      ///< that sets it
  std::string who = {};  ///< a user, or `@group`; empty: all users
};

/// How much memory programs of ordinary users may lock.
struct GuestMemoryLock {
  GuestMemoryLimit login;                       ///< by PAM, for all users
  std::vector<GuestMemoryLimit> loginOfOthers;  ///< by PAM, for some users; at most 16
  GuestMemoryLimit services;                    ///< by systemd
  std::optional<std::uint64_t> memoryBytes;     ///< of the guest
};

/// An installed kernel that is newer than the running one.
struct GuestKernel {
  std::string release;
  /// RDMA and GPU modules that are loaded now and that it lacks; nullopt: unknown.
  std::optional<std::vector<std::string>> missing;
};

/// The guest's devices as its probe reports them. Every text is untrusted.
struct GuestView {
  std::vector<GuestNetdev> netdevs;
  std::vector<GuestFunction> withoutDriver;  ///< PCI functions without a driver
  bool libibverbs = false;
  std::string libibverbsDetail;
  bool librdmacm = false;
  std::vector<GuestRdmaDevice> rdmaDevices;
  bool libcuda = false;
  std::string libcudaDetail;
  std::optional<int> cudaStatus;  ///< CUDA's error; nullopt: it works, or was not initialized
  std::optional<CudaProblem> cudaProblem;        ///< nullopt: it works, or an older probe
  bool peerMemory = false;                       ///< nvidia_peermem is loaded
  bool peerMemoryLoadable = false;               ///< nvidia_peermem can be loaded
  std::optional<bool> peerMemoryInterface = {};  ///< the kernel has what nvidia_peermem needs
  std::string kernel = {};                       ///< release, `6.8.0-51-generic`
  std::string nvidiaDriver = {};  ///< /proc/driver/nvidia/version, which tells the modules' flavour
  std::string nvidiaVersion = {};            ///< `550.54.15`
  std::optional<unsigned> cudaVersion = {};  ///< as CUDA writes it: 12040 is 12.4
  std::vector<GuestGpu> gpus;
  std::vector<GuestDistance> distances;
  std::map<std::string, GuestPciServices> services;  ///< by PCI address
  std::string confinedAs;  ///< the probe's SELinux context, if that confines it; otherwise empty
  std::vector<GuestPath> functions;         ///< all PCI functions
  std::vector<std::string> kernelLog = {};  ///< at most 48 lines, oldest first; empty: unknown
  std::optional<GuestNccl> nccl = {};       ///< nullopt: an older probe
  std::optional<GuestMemoryLock> memoryLock = {};             ///< nullopt: an older probe
  std::optional<std::vector<GuestKernel>> newerKernels = {};  ///< at most 16; nullopt: older probe
};

/// Reads the report of `vfpass-probe inventory`. Members that are missing or of another type read
/// as empty, and the checks then fail.
GuestView readGuestView(const nlohmann::json& document);

/// The port of this RDMA device; null when there is none.
const GuestPort* findPort(const GuestView& view, const std::string& device, int number);

/// The address of the function at a place that the domain's XML describes (topology::guestPath):
/// only the first bus number of `place` is the guest's. nullopt when the guest has no function
/// there.
std::optional<PciAddress> functionAtPath(const GuestView& view,
                                         const std::vector<PciAddress>& place);

}  // namespace vfpass::verify
