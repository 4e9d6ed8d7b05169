#include "sriov/pf_and_vfs.hpp"

#include <cerrno>

namespace vfpass::host {
namespace {

constexpr const char* failedRemedy =
    "find the cause in the kernel log (dmesg): the driver or the card's firmware failed";

// sriov_vf_msix_count_store() in drivers/pci/iov.c.
constexpr const char* boundRemedy =
    "a driver is bound to the VF, and the kernel changes its interrupt vectors only without one: "
    "unbind it (a udev rule or driverctl may have bound it), then repeat the command";

// max_dynamic_vf_msix_table_size (mlx5_set_msix_vec_count in mlx5/core/pci_irq.c).
constexpr const char* tooManyRemedy =
    "this is more than the card allows for one VF (a limit that sysfs does not show, below the "
    "number for all VFs together in sriov_vf_total_msix): set `msix-vectors` to a smaller number "
    "in the mapping";

}  // namespace

bool isPermission(int error) { return error == EPERM || error == EACCES; }

// The driver does not know the attribute or the value. Any other error, such as those of mlx5's
// firmware commands (cmd_status_to_err: EIO, EBUSY, EAGAIN, ENOMEM; ETIMEDOUT), is a failure. Too
// few interrupt vectors are a refusal: other VFs have them, or the card allows fewer for one VF
// (mlx5_set_msix_vec_count: EOVERFLOW).
bool isRefusal(Attribute attribute, int error) {
  const bool tooFew = error == EOVERFLOW || error == ENOMEM || error == EAGAIN || error == ENOSPC;
  return isPermission(error) || error == EOPNOTSUPP || error == EPROTONOSUPPORT ||
         error == EINVAL || error == ERANGE || (attribute == Attribute::msixVectors && tooFew);
}

std::string attributeRemedy(Attribute attribute) {
  const std::string name(toString(attribute));
  switch (attribute) {
    case Attribute::nodeGuid:
    case Attribute::portGuid:
      return "on Ethernet, remove the `infiniband:` block from the mapping: only InfiniBand ports "
             "have GUIDs";
    case Attribute::mac:
      return "use a unicast address, and check that the PF's driver lets the host set it (on "
             "InfiniBand it does not: omit `mac`)";
    case Attribute::msixVectors:
      return "set `msix-vectors` to a smaller number, give other VFs of the PF fewer, or remove "
             "`msix-vectors` from the mapping";
    default:
      return "if the VM does not need " + name +
             ", list the attributes that it needs under `required:` in the mapping (without a list "
             "all are required), or remove " +
             name + "; a newer driver or firmware may accept it";
  }
}

std::string refusalRemedy(Attribute attribute, int error) {
  const bool vectors = attribute == Attribute::msixVectors;
  if (vectors && error == EBUSY) {
    return boundRemedy;
  }
  if (vectors && error == EOVERFLOW) {
    return tooManyRemedy;
  }
  return isRefusal(attribute, error) ? attributeRemedy(attribute) : failedRemedy;
}

}  // namespace vfpass::host
