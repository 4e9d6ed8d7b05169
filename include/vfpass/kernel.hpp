#pragma once

#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"

namespace vfpass {

/// An optional attribute that the driver refused.
struct RefusedAttribute {
  unsigned vfIndex = 0;
  Attribute attribute = Attribute::mac;
  std::string reason;  ///< the system's message
  /// The device failed, now: the answer does not mean that the driver lacks the attribute or that
  /// the value is invalid.
  bool failed = false;
};

/// How the reset of a function ended.
struct ResetOutcome {
  /// The kernel's methods for it, in the order in which it tries them. Empty: none of them works,
  /// or the kernel does not list them (before Linux 5.15).
  std::vector<std::string> methods;
  bool done = false;           ///< false without a failure: the function has no reset method
  std::exception_ptr failure;  ///< an Error, or null
  MemoryCheck memory = {};     ///< of a GPU
};

/// A creation of VFs failed, and VFs or the changed probing of new VFs may be left. Any other Error
/// of Kernel::createVfs() means that the kernel has answered that it created none.
class CreationLeft : public Error {
 public:
  using Error::Error;
};

/// The interface to the running kernel. `host::SystemKernel` implements it; tests use a fake that
/// refuses what the kernel refuses. Every call reads its effect back, has a deadline and throws
/// Error. After a throw the previous state was restored, or the error names what was not.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  /// The PF with its VFs, their attributes, and the firmware of its RDMA devices. Throws when there
  /// is none at that address.
  virtual PhysicalFunction readPf(const PciAddress& pf) = 0;

  /// Every SR-IOV capable function with a driver that names VFs, by address.
  virtual std::vector<PhysicalFunction> readPfs() = 0;

  /// The function at that address, of any type including VF; nullopt when there is none.
  virtual std::optional<Device> readFunction(const PciAddress& function) = 0;

  /// Addresses of the PF's VFs, by index; empty when it has none or does not exist. Reads links
  /// only.
  virtual std::map<unsigned, PciAddress> vfAddresses(const PciAddress& pf) = 0;

  /// All current holders of these functions or VFs, in the order of the functions; empty: all are
  /// idle. Whatever is not observable is reported as a holder of kind `unknown`, never as an empty
  /// result. A function that does not exist has no holder. Throws Error.
  virtual std::vector<Holder> findHolders(const std::vector<PciAddress>& functions) = 0;

  /// Throws when the PF already has VFs, when the count exceeds the PF's limit, or when fewer VFs
  /// appear than requested (they are removed again). Throws CreationLeft when that fails, too.
  /// Returns warnings about VFs that were created but may not work.
  virtual std::vector<std::string> createVfs(const CreateVfs& action) = 0;

  /// Throws (ExitCode::refused) while a VF is bound to vfio-pci or has a holder (findHolders) of
  /// any kind except `unknown`, which is left to the caller.
  virtual void removeVfs(const RemoveVfs& action) = 0;

  /// Sets sriov_drivers_autoprobe: whether host drivers may bind to VFs of this PF.
  virtual void setVfProbing(const PciAddress& pf, bool on) = 0;

  /// Sends only the attributes that differ from the PF's current report. If the driver refuses a
  /// required attribute, the changes are rolled back and Error names attribute and driver. Other
  /// refused attributes are returned.
  virtual std::vector<RefusedAttribute> configureVfs(const ConfigureVfs& action) = 0;

  /// Empty: not observable, or the PF's driver has no ports of VFs (mlx5 in legacy mode).
  virtual MigratableVfs migratableVfs(const PciAddress& pf) = 0;

  /// Does nothing when driver, override and `migratable` already match. A VF that has the driver
  /// but not `migratable` is bound again. A driver that hangs in unbind results in an Error that
  /// names the device, after the deadline.
  virtual void bindDriver(const BindDriver& action) = 0;

  /// Binds different functions; VFs in parallel. The result has, in the same order, null or the
  /// exception that bindDriver() would have thrown.
  virtual std::vector<std::exception_ptr> bindDrivers(const std::vector<BindDriver>& actions) = 0;

  /// Resets functions in parallel: returns when each reset has ended or the deadline has passed.
  /// The result has the same order. With MemoryChecks::off no memory of a device is accessed.
  virtual std::vector<ResetOutcome> resetFunctions(const std::vector<ResetFunction>& actions,
                                                   MemoryChecks memory) = 0;

  /// Errors of the function that AER has counted since it appeared. nullopt: the function, the
  /// kernel or the firmware has no such counters.
  virtual std::optional<ErrorCounts> errorCounts(const PciAddress& function) = 0;

  /// What the kernel log says of the function; nullopt unless it is a GPU of NVIDIA.
  virtual std::optional<XidLog> xidLog(const PciAddress& function) = 0;

  /// What identifies the function in every slot: vendor and device, function number, index of a VF,
  /// and the serial number of its card, of a VF that of its PF. `serial`: the card's VPD serial if
  /// the caller has read it, so that it is not read again. Empty: no serial number can be read, or
  /// there is no such function (yet). Two cards of a vendor that numbers none of them can have the
  /// same.
  virtual std::string identityOf(const PciAddress& function,
                                 const std::optional<std::string>& serial) = 0;

  /// The functions with these identities, by address. Reads every card that can have one, once.
  virtual std::map<std::string, std::vector<PciAddress>> findIdentities(
      const std::set<std::string>& identities) = 0;

  /// The settings of a PF that host.yaml controls, other than its VFs. Not observable on a captured
  /// tree. The mode of a PF whose port has a fault (faultOfPort()) is not read.
  virtual PfSettings readPfSettings(const PciAddress& pf) = 0;

  /// These three do nothing where the value already matches.
  virtual void setEswitchMode(const SetEswitchMode& action) = 0;
  virtual void setMtu(const SetMtu& action) = 0;
  virtual void setLinkUp(const SetLinkUp& action) = 0;

  /// Every RDMA device, by name.
  virtual std::vector<RdmaLink> readRdmaLinks() = 0;

  /// Users of the RDMA device with this number, a phrase each. Throws where not observable.
  virtual std::vector<std::string> rdmaUsers(std::uint32_t number) = 0;

  /// The reason why the netdev cannot carry a SoftRoCE link; empty: it can.
  virtual std::string softRoceFault(const std::string& netdev) = 0;

  /// Creates the link and returns its number.
  virtual std::uint32_t addSoftRoceLink(const std::string& name, const std::string& netdev) = 0;

  /// Removes the link by its number; does nothing when it no longer exists.
  virtual void removeSoftRoceLink(const RdmaLink& link) = 0;

  /// /proc/sys/kernel/random/boot_id: nothing that ran under another boot ID still runs.
  virtual std::string bootId() = 0;

  /// Interrupt vectors that the VFs of this PF share (sriov_vf_total_msix). 0: the kernel (before
  /// Linux 5.13), the PF's driver or its firmware lets nobody distribute them; empty: not
  /// observable.
  virtual std::optional<unsigned> totalVfVectors(const PciAddress& pf) = 0;

  /// Activates or deactivates the partition that holds exactly these GPUs; does nothing where it is
  /// as stated already, or to deactivate one that does not exist. Calls `activating` before an
  /// activation, if the partition is inactive. Throws Error if no partition holds exactly the GPUs
  /// to activate, or if another active one has some of them. Without fmpm nothing can be activated,
  /// and a deactivation is left to whoever has removed it. TimeoutError: the fabric manager has not
  /// answered the change in time, and may still make it.
  virtual void setPartition(const SetPartition& action,
                            const std::function<void()>& activating) = 0;

  /// As configureVfs(), but sends all attributes, after a change that failed: mlx5 reports a value
  /// whose rules it could not make (esw_acl_ingress_lgcy_setup). A refused attribute that already
  /// reads back as stated is not returned.
  virtual std::vector<RefusedAttribute> restoreVfs(const ConfigureVfs& action) = 0;
};

}  // namespace vfpass
