#pragma once

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
  std::vector<PciAddress> hangingUnbinds;
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
  void createVfs(const CreateVfs& action) override;
  void removeVfs(const RemoveVfs& action) override;
  std::vector<RefusedAttribute> configureVfs(const ConfigureVfs& action) override;
  void bindDriver(const BindDriver& action) override;
  void resetFunction(const ResetFunction& action) override;
  std::string bootId() override { return boot; }

  /// Loses what a reboot loses: VFs and their attributes, overrides, and bindings by them.
  void reboot();
  [[nodiscard]] Inventory inventory() const;

 private:
  std::map<PciAddress, std::string> bootDrivers_;
  PhysicalFunction& at(const PciAddress& pf);
  VirtualFunction* findVf(const PciAddress& function);
  void bind(auto& device, const BindDriver& action);
  void addVf(PhysicalFunction& pf, unsigned index, bool probe) const;
  template <typename Effect>
  void change(Effect effect);
};

}  // namespace vfpass::fake
