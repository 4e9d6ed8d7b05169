#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::fake {

/// Thrown in place of a kill: not an Error, so nothing of the code under test may catch it.
struct Killed {};

/// A kernel in memory that refuses what the real one refuses: a second count while VFs exist, more
/// VFs than the PF has, attributes the driver does not take, binding what is not there.
class FakeKernel final : public Kernel {
 public:
  std::map<PciAddress, PhysicalFunction> pfs;
  std::map<PciAddress, PciFunction> functions;  ///< those that are neither PF nor VF
  std::map<PciAddress, std::vector<Attribute>> refusedAttributes;  ///< by PF
  /// Their unbinding ends in a TimeoutError; what was written is still to come
  /// (finishPendingWrites).
  std::vector<PciAddress> hangingUnbinds;
  std::map<PciAddress, PfSettings> pfSettings;  ///< addPf(): legacy, MTU 1500, down
  std::vector<RdmaLink> rdmaLinks;
  std::map<std::uint32_t, std::vector<std::string>> usersOfRdma;  ///< by number
  std::map<std::string, std::string> softRoceFaults;              ///< by netdev
  /// Beyond those that follow from the VFs and functions themselves.
  std::vector<Holder> holders;
  std::function<void()> beforeFindHolders;  ///< what changes meanwhile
  std::string boot = "boot-1";
  int killBeforeEffect = -1;  ///< counts changes; -1: never
  int killAfterEffect = -1;
  int failAtEffect = -1;
  int effects = 0;

  /// A PF as the host has it after boot: driver mlx5_core, VFs on mlx5_core with a netdev each.
  PhysicalFunction& addPf(const std::string& address, const std::string& netdev, unsigned totalVfs,
                          unsigned vfCount);

  /// A function as the host has it after boot, with a driver and an IOMMU group of its own.
  PciFunction& addFunction(const std::string& address, const std::string& driver);

  PhysicalFunction readPf(const PciAddress& pf) override;
  std::vector<PhysicalFunction> readPfs() override;
  std::optional<PciFunction> readFunction(const PciAddress& function) override;
  std::map<unsigned, PciAddress> vfAddresses(const PciAddress& pf) override;
  std::vector<Holder> findHolders(const std::vector<PciAddress>& functions) override;
  void createVfs(const CreateVfs& action) override;
  void removeVfs(const RemoveVfs& action) override;
  void setVfProbing(const PciAddress& pf, bool on) override;
  std::vector<RefusedAttribute> configureVfs(const ConfigureVfs& action) override;
  void bindDriver(const BindDriver& action) override;
  void resetFunction(const ResetFunction& action) override;
  void resetFunctions(const std::vector<ResetFunction>& actions) override;
  PfSettings readPfSettings(const PciAddress& pf) override;
  void setEswitchMode(const SetEswitchMode& action) override;
  void setMtu(const SetMtu& action) override;
  void setLinkUp(const SetLinkUp& action) override;
  std::vector<RdmaLink> readRdmaLinks() override { return rdmaLinks; }
  std::vector<std::string> rdmaUsers(std::uint32_t number) override;
  std::string softRoceFault(const std::string& netdev) override;
  std::uint32_t addSoftRoceLink(const std::string& name, const std::string& netdev) override;
  void removeSoftRoceLink(const RdmaLink& link) override;
  std::string bootId() override { return boot; }

  /// The late effect of unbindings that timed out: the driver has let go, and nothing else
  /// happened.
  void finishPendingWrites();

  /// Loses what a reboot loses: VFs and their attributes, overrides, and bindings by them.
  void reboot();
  [[nodiscard]] Inventory inventory();

 private:
  std::map<PciAddress, std::string> bootDrivers_;
  std::uint32_t lastRdmaNumber_ = 100;
  PhysicalFunction& at(const PciAddress& pf);
  VirtualFunction* findVf(const PciAddress& function);
  void bind(auto& device, const BindDriver& action);
  void addVf(PhysicalFunction& pf, unsigned index, bool probe) const;
  template <typename Effect>
  void change(Effect effect);
};

}  // namespace vfpass::fake
