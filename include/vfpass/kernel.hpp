#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"

namespace vfpass {

/// An attribute that the driver refused although nobody required it.
struct RefusedAttribute {
  unsigned vfIndex = 0;
  Attribute attribute = Attribute::mac;
  std::string reason;  ///< the system's words
};

/// All that vfpass does to the running kernel. `host::SystemKernel` is the real one; tests use a
/// fake that refuses as the kernel refuses. Every call reads its effect back, has a deadline and
/// throws Error; after a throw the object is as it was before, or the error says what is not.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  /// The PF with its VFs and their attributes. Throws when there is none at that address.
  virtual PhysicalFunction readPf(const PciAddress& pf) = 0;

  /// Every SR-IOV capable function with a driver that names VFs, by address.
  virtual std::vector<PhysicalFunction> readPfs() = 0;

  /// The function at that address, whatever it is (a VF, too); nullopt when there is none.
  virtual std::optional<PciFunction> readFunction(const PciAddress& function) = 0;

  /// Where the PF's VFs are, by index; empty when it has none, or is not there. Reads links only.
  virtual std::map<unsigned, PciAddress> vfAddresses(const PciAddress& pf) = 0;

  /// Everyone who holds one of these functions (VFs, too) at this moment, in the order of the
  /// functions; empty: all of them are idle. What cannot be observed is a holder of kind `unknown`,
  /// never an empty answer. A function that does not exist has no holder. Throws Error.
  virtual std::vector<Holder> findHolders(const std::vector<PciAddress>& functions) = 0;

  /// Throws when the PF has VFs already, when the count is above the PF's limit, or when fewer
  /// appeared than asked for (those are removed again).
  virtual void createVfs(const CreateVfs& action) = 0;

  /// Throws (ExitCode::refused) while a VF is bound to vfio-pci or has a holder (findHolders) of
  /// any kind but `unknown`, which is the caller's to decide.
  virtual void removeVfs(const RemoveVfs& action) = 0;

  /// Sets sriov_drivers_autoprobe: whether the host's drivers may take VFs of this PF.
  virtual void setVfProbing(const PciAddress& pf, bool on) = 0;

  /// Sends only what differs from what the PF says now. A refused required attribute: what this
  /// call has changed is put back and Error names attribute and driver. Others are returned.
  virtual std::vector<RefusedAttribute> configureVfs(const ConfigureVfs& action) = 0;

  /// Does nothing when driver and override are as wanted. A driver that hangs in unbind ends in an
  /// Error that names the device, after the deadline.
  virtual void bindDriver(const BindDriver& action) = 0;

  /// A function that has no reset is left as it is.
  virtual void resetFunction(const ResetFunction& action) = 0;

  /// The same for several functions, in parallel: returns when each reset has ended or the deadline
  /// has passed. Throws one Error that names every function that failed.
  virtual void resetFunctions(const std::vector<ResetFunction>& actions) = 0;

  /// What host.yaml sets on a PF beside its VFs; nothing of a captured tree is observable.
  virtual PfSettings readPfSettings(const PciAddress& pf) = 0;

  /// These three do nothing where the value is as wanted already.
  virtual void setEswitchMode(const SetEswitchMode& action) = 0;
  virtual void setMtu(const SetMtu& action) = 0;
  virtual void setLinkUp(const SetLinkUp& action) = 0;

  /// Every RDMA device, by name.
  virtual std::vector<RdmaLink> readRdmaLinks() = 0;

  /// Who uses the RDMA device with this number, a phrase each. Throws where that is not observable.
  virtual std::vector<std::string> rdmaUsers(std::uint32_t number) = 0;

  /// Why the netdev cannot carry a SoftRoCE link; empty: it can.
  virtual std::string softRoceFault(const std::string& netdev) = 0;

  /// Makes the link and returns its number.
  virtual std::uint32_t addSoftRoceLink(const std::string& name, const std::string& netdev) = 0;

  /// By its number; nothing to do when it is gone.
  virtual void removeSoftRoceLink(const RdmaLink& link) = 0;

  /// /proc/sys/kernel/random/boot_id: what was running under another one runs no more.
  virtual std::string bootId() = 0;
};

}  // namespace vfpass
