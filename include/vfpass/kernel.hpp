#pragma once

#include <optional>
#include <string>
#include <vector>

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

  /// Throws when the PF has VFs already, when the count is above the PF's limit, or when fewer
  /// appeared than asked for (those are removed again).
  virtual void createVfs(const CreateVfs& action) = 0;

  /// Throws (ExitCode::refused) while a VF is bound to vfio-pci or its netdev is up.
  virtual void removeVfs(const RemoveVfs& action) = 0;

  /// Sends only what differs from what the PF says now. A refused required attribute: what this
  /// call has changed is put back and Error names attribute and driver. Others are returned.
  virtual std::vector<RefusedAttribute> configureVfs(const ConfigureVfs& action) = 0;

  /// Does nothing when driver and override are as wanted. A driver that hangs in unbind ends in an
  /// Error that names the device, after the deadline.
  virtual void bindDriver(const BindDriver& action) = 0;

  /// A function that has no reset is left as it is.
  virtual void resetFunction(const ResetFunction& action) = 0;

  /// /proc/sys/kernel/random/boot_id: what was running under another one runs no more.
  virtual std::string bootId() = 0;
};

}  // namespace vfpass
