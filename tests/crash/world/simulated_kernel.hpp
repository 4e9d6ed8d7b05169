#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"
#include "worker/wire.hpp"
#include "world/host_files.hpp"

namespace vfpass::crash {

struct SimulatedPf {
  PciAddress address;
  std::string port;  ///< the root port above it
  int ifindex = 0;
  std::string netdev;
  unsigned totalVfs = 8;
  unsigned mtu = 1500;
  bool up = true;
  bool switchdev = false;
  std::map<unsigned, VfSettings> vfs;
};

struct RdmaDevice {
  std::string netdev;
  unsigned number = 0;
};

/// Only the attributes before `attribute` of a netlink message are set; then it fails.
struct PartialFailure {
  long attribute = 0;
  int error = 0;
};

/// A kernel with mlx5 PFs, other PCI functions and SoftRoCE, whose sysfs is a tree of files. Writes
/// and netlink messages arrive as requests. The state of a PF is public, for tests to set it.
class SimulatedKernel {
 public:
  explicit SimulatedKernel(HostFiles files);
  /// A copy for the same tree in another directory.
  SimulatedKernel(const SimulatedKernel& other, HostFiles files);

  std::vector<SimulatedPf> pfs;
  std::map<PciAddress, std::string> functions;  ///< other functions, with their driver after boot
  std::map<std::string, RdmaDevice> rdmaDevices;
  std::set<std::string> brokenResets;  ///< functions whose reset always fails

  void addPf(const std::string& address, const std::string& port, const std::string& netdev,
             int ifindex);
  void addFunction(const std::string& address, const std::string& port, const std::string& driver,
                   const std::string& classCode);
  void setVfCount(const std::string& pf, unsigned count);
  VfSettings& settings(const std::string& pf, unsigned vf);
  SimulatedPf* findPf(const std::string& address);
  /// The lock of a function is held by something that hangs: reads of its driver_override, also by
  /// a worker itself, and writes to it do not return. Neither copy nor compare the host meanwhile.
  void holdLock(const std::string& function);
  /// What hangs goes on.
  void releaseLock(const std::string& function);
  /// Drivers, VFs, links and attributes as after a boot.
  void reboot();

  /// Executes a request that changes something. The reply begins with the errno, or 0.
  Message change(const Message& request, std::optional<PartialFailure> failure = std::nullopt);
  /// Answers a request that only reads.
  Message read(const Message& request);

  /// Keeps a write pending until finishPending(), or until so many requests have been received. A
  /// request for the same device finishes it earlier, because it waits for the device's lock.
  void postpone(const Message& request, int requests);
  void finishPending();
  void countTowardsPending(const Message& request);
  /// Whether a pending write holds this function or, if it changes the VF count, its PF.
  [[nodiscard]] bool hasPendingWrite(const std::string& function) const;
  [[nodiscard]] bool hasPendingWrites() const { return !pending_.empty(); }

 private:
  struct PendingWrite {
    Message request;
    PciAddress device;
    int requestsLeft = 0;
  };

  SimulatedPf* findPf(int ifindex);
  void addPciFunction(const std::string& address, const std::string& port,
                      const std::string& classCode) const;
  void applyVfCount(SimulatedPf& pf, unsigned count);
  void removeVfs(SimulatedPf& pf);
  void bind(const std::string& function, const std::string& driver);
  int writeFile(const std::string& path, const std::string& text);
  int writeDriverFile(const std::string& driver, bool bindIt, const std::string& function);
  int writePfFile(SimulatedPf& pf, const std::string& name, const std::string& text);
  int setAttributes(const Message& request, std::optional<PartialFailure> failure);
  int setLink(const Message& request);
  int setMode(const Message& request);
  Message addRdmaDevice(const Message& request);
  Message readFile(const Message& request) const;

  [[nodiscard]] bool isLocked(const std::optional<PciAddress>& device) const;

  HostFiles files_;
  std::map<std::string, std::string> overridesOfLocked_;  // by function
  unsigned lastRdmaNumber_ = 100;
  std::vector<PendingWrite> pending_;
};

/// The device that a write to sysfs concerns; nullopt for other requests.
std::optional<PciAddress> deviceOf(const Message& request);

/// The address of a VF, as with an offset and a stride of 1.
std::string vfAddressOf(const std::string& pf, unsigned vf);

/// The number of attributes that a netlink message sets; 1 for other requests.
long attributesIn(const Message& request);

}  // namespace vfpass::crash
