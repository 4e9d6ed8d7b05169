#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/fabric_partition.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::fake {

/// Simulates a kill. Not an Error, so that the code under test does not catch it.
struct Killed {};

/// A kernel in memory that refuses what the real one refuses: another count while VFs exist, more
/// VFs than the PF supports, attributes that the driver refuses, interrupt vectors of a VF that has
/// a driver, binding missing functions, a VF that the firmware cannot save to the driver that needs
/// it (VirtualFunction::migratable; empty: it cannot). A PF shares out vectors if its
/// totalVfVectors is set.
class FakeKernel final : public Kernel {
 public:
  std::map<PciAddress, PhysicalFunction> pfs;
  std::map<PciAddress, Device> functions;  ///< functions that are neither PF nor VF
  std::map<PciAddress, std::vector<Attribute>> refusedAttributes;  ///< by PF
  /// By PF: setting these fails as a command of the firmware does. Attributes that were set before
  /// stay, as if restoring them had failed, too.
  std::map<PciAddress, std::vector<Attribute>> failingAttributes;
  bool failureSpreads = false;  ///< after the first failure all attributes fail
  /// Binding these to a driver other than `vfio-pci` fails, and so does restoring the previous one:
  /// they have no driver then.
  std::vector<PciAddress> failingProbes;
  std::map<PciAddress, ErrorCounts> errors;  ///< counted by AER; others have no counters
  std::map<PciAddress, XidLog> xidLogs;      ///< of GPUs of NVIDIA
  /// Of PFs and other functions with a serial number, while they exist. A VF has that of its PF.
  std::map<PciAddress, std::string> identities;
  std::function<void()> beforeIdentity = [] {};  ///< called when a card's number is read
  std::map<PciAddress, int> identityReads;       ///< by card: how often its number was read
  std::vector<PciAddress> brokenResets;          ///< resetting these fails
  std::map<PciAddress, MemoryCheck> memories;    ///< of GPUs, found if checked
  std::vector<PciAddress> hangingResets;         ///< resetting these does not return in time
  /// What `ip link set PF vf N` set for VFs that do not exist. mlx5 accepts it for every index, and
  /// the VF has it when it is created; only VFs that exist lose theirs when they are removed.
  std::map<PciAddress, std::map<unsigned, VfSettings>> leftOvers;
  /// Unbinding these throws TimeoutError; the write takes effect in finishPendingWrites().
  std::vector<PciAddress> hangingUnbinds;
  std::map<PciAddress, PfSettings> pfSettings;  ///< after addPf(): legacy, MTU 1500, down
  std::vector<std::string> creationWarnings;    ///< of every creation of VFs
  std::vector<RdmaLink> rdmaLinks;
  std::vector<FabricPartition> partitions;                        ///< of the fabric manager
  std::map<std::uint32_t, std::vector<std::string>> usersOfRdma;  ///< by number
  bool unreadable = false;              ///< reading a PF fails, as if no process could be started
  int failedReads = 0;                  ///< because of that
  bool losesAnswersOfBindings = false;  ///< several at once take effect, and then the call fails
  bool losesReplyOfLink = false;        ///< the next SoftRoCE link is created without an answer
  std::map<std::string, std::string> softRoceFaults;  ///< by netdev
  /// In addition to the holders derived from VFs and functions.
  std::vector<Holder> holders;
  std::function<void()> beforeFindHolders;  ///< simulates a concurrent change
  std::string boot = "boot-1";
  int killBeforeEffect = -1;  ///< counts changes; -1: never
  int killAfterEffect = -1;
  int failAtEffect = -1;
  int effects = 0;

  /// A PF in its state after boot: bound to mlx5_core, as are its VFs.
  PhysicalFunction& addPf(const std::string& address, const std::string& netdev, unsigned totalVfs,
                          unsigned vfCount);

  /// A function in its state after boot, with a driver and an IOMMU group of its own.
  Device& addFunction(const std::string& address, const std::string& driver);

  PhysicalFunction readPf(const PciAddress& pf) override;
  std::vector<PhysicalFunction> readPfs() override;
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
  void setPartition(const SetPartition& action, const std::function<void()>& activating) override;
  std::vector<RdmaLink> readRdmaLinks() override { return rdmaLinks; }
  std::vector<std::string> rdmaUsers(std::uint32_t number) override;
  std::string softRoceFault(const std::string& netdev) override;
  std::uint32_t addSoftRoceLink(const std::string& name, const std::string& netdev) override;
  void removeSoftRoceLink(const RdmaLink& link) override;
  std::string bootId() override { return boot; }

  /// Simulates the late effect of unbinds that timed out: the driver has been unbound.
  void finishPendingWrites();

  /// Discards the state that a reboot discards: VFs and their attributes, overrides and bindings.
  void reboot();
  [[nodiscard]] Inventory inventory();

 private:
  std::map<PciAddress, std::string> bootDrivers_;
  std::uint32_t lastRdmaNumber_ = 100;
  PhysicalFunction& at(const PciAddress& pf);
  std::string identityOfCard(const PciAddress& card);
  VirtualFunction* findVf(const PciAddress& function);
  [[nodiscard]] std::optional<PciAddress> pfOf(const PciAddress& vf) const;
  void bind(Device& device, const BindDriver& action);
  void bindVf(VirtualFunction& vf, const BindDriver& action);
  void resetFunction(const ResetFunction& action);
  std::vector<RefusedAttribute> configure(const ConfigureVfs& action, bool all);
  void addVf(PhysicalFunction& pf, unsigned index, bool probe) const;
  template <typename Effect>
  void change(Effect effect);
};

}  // namespace vfpass::fake
