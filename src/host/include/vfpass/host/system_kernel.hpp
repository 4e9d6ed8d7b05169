#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/host/device_identity.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::host {

/// Timeouts for kernel calls, after which an Error names the device that hangs.
struct Deadlines {
  std::chrono::milliseconds bind = deadlines::bind;
  std::chrono::milliseconds createVfs = deadlines::createVfs;
  std::chrono::milliseconds removeVfs = deadlines::removeVfs;
  std::chrono::milliseconds netlink = deadlines::netlink;
  std::chrono::milliseconds eswitch = deadlines::eswitch;
  std::chrono::milliseconds rdma = deadlines::rdma;
  std::chrono::milliseconds fabric = deadlines::fabric;
  /// Deadline for all calls together: no single call waits beyond it.
  std::optional<std::chrono::steady_clock::time_point> end = std::nullopt;
};

/// The running kernel, through sysfs and rtnetlink. With a root other than `/` (a captured tree) it
/// is read-only: attributes are not observable, and every change throws.
class SystemKernel final : public Kernel {
 public:
  explicit SystemKernel(const std::filesystem::path& root = "/", Deadlines deadlines = {});
  explicit SystemKernel(Root root, Deadlines deadlines = {});
  ~SystemKernel() override;

  PhysicalFunction readPf(const PciAddress& pf) override;
  /// The same, but of VFs that are not among `vfs` only index, address and attributes.
  PhysicalFunction readPf(const PciAddress& pf, const std::vector<PciAddress>& vfs);
  std::vector<PhysicalFunction> readPfs() override { return readPfs(Serials::read); }
  std::vector<PhysicalFunction> readPfs(Serials serials);
  /// All PFs without VFs, attributes and addresses: enough to select them.
  std::vector<PhysicalFunction> readPfIdentities(Serials serials = Serials::read);
  /// All PFs with what a table of VFs shows: no driver overrides and users of VFs, no upper devices
  /// and addresses of PFs.
  std::vector<PhysicalFunction> readVfTable(Serials serials = Serials::read);
  std::optional<Device> readFunction(const PciAddress& function) override;
  std::map<unsigned, PciAddress> vfAddresses(const PciAddress& pf) override;
  std::vector<Holder> findHolders(const std::vector<PciAddress>& functions) override;
  std::vector<std::string> createVfs(const CreateVfs& action) override;
  void removeVfs(const RemoveVfs& action) override;
  void setVfProbing(const PciAddress& pf, bool on) override;
  std::vector<RefusedAttribute> configureVfs(const ConfigureVfs& action) override;
  std::vector<RefusedAttribute> restoreVfs(const ConfigureVfs& action) override;
  MigratableVfs migratableVfs(const PciAddress& pf) override;
  void bindDriver(const BindDriver& action) override;
  std::vector<std::exception_ptr> bindDrivers(const std::vector<BindDriver>& actions) override;
  std::vector<ResetOutcome> resetFunctions(const std::vector<ResetFunction>& actions,
                                           MemoryChecks memory) override;
  std::optional<ErrorCounts> errorCounts(const PciAddress& function) override;
  std::optional<XidLog> xidLog(const PciAddress& function) override;
  std::string identityOf(const PciAddress& function,
                         const std::optional<std::string>& serial) override;
  std::map<std::string, std::vector<PciAddress>> findIdentities(
      const std::set<std::string>& identities) override;
  PfSettings readPfSettings(const PciAddress& pf) override;
  std::optional<unsigned> totalVfVectors(const PciAddress& pf) override;
  void setEswitchMode(const SetEswitchMode& action) override;
  void setMtu(const SetMtu& action) override;
  void setLinkUp(const SetLinkUp& action) override;
  std::vector<RdmaLink> readRdmaLinks() override;
  std::vector<std::string> rdmaUsers(std::uint32_t number) override;
  std::string softRoceFault(const std::string& netdev) override;
  std::uint32_t addSoftRoceLink(const std::string& name, const std::string& netdev) override;
  void removeSoftRoceLink(const RdmaLink& link) override;
  std::string bootId() override;
  void setPartition(const SetPartition& action, const std::function<void()>& activating) override;

  /// Traffic of VF `index` of this PF; nullopt when the driver does not count it or the reply omits
  /// the VF. Throws Error, TimeoutError.
  std::optional<VfTraffic> vfTraffic(const PciAddress& pf, unsigned index);

  /// vfio_iommu_type1.allow_unsafe_interrupts, and whether any IOMMU group exists.
  bool unsafeInterrupts();
  bool iommuPresent();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace vfpass::host
