#include "sriov/count_refusal.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr const char* countSetting = "virtual-function-count in host.yaml";

// sriov_numvfs_store: either no driver is bound, or the driver has no sriov_configure.
Error withoutDriver(const Root& root, const PciAddress& pf, const std::string& what,
                    const std::string& reason) {
  const std::string driver = readDriver(root, pf);
  if (driver.empty()) {
    return Error(what + ": no driver with SR-IOV support is bound: " + reason,
                 "bind the PF to its own driver, such as mlx5_core for a ConnectX");
  }
  return Error(
      what + ": its driver " + printable(driver) + " does not take the count from sysfs: " + reason,
      "use a PF whose driver does (mlx5_core); other drivers have a way of their own, such as "
      "mlx4_core its module parameter num_vfs");
}

// The first lines: a driver reports the cause before its consequences.
std::string quoted(std::vector<std::string> logged) {
  constexpr std::size_t limit = 3;
  logged.resize(std::min(logged.size(), limit));
  return logged.empty() ? std::string{} : "; the kernel log: " + join(logged, "; ");
}

// What each errno can mean: drivers/pci/iov.c (sriov_enable, virtfn_add_bus) and mlx5's
// cmd_status_to_err.
std::string remedyFor(const PciAddress& pf, int error) {
  const std::string fewer = std::string("request fewer VFs (") + countSetting + ")";
  switch (error) {
    case ENOMEM:
      return creationRemedy(pf);
    case ENOSPC:
      return searchLog(pf) +
             ". The driver has too few interrupt vectors (MSI-X) or queues for so "
             "many VFs, or the host too few bus numbers: " +
             fewer;
    case EAGAIN:
      return searchLog(pf) +
             ". The card's firmware has no resources left for so many VFs: " + fewer;
    case EINVAL:
    case EIO:
      return searchLog(pf) + ". If mlx5_core reports a refused firmware command, " + fewer +
             ". If it reports a health error or the log has no line, power-cycle the machine, "
             "which "
             "also makes changed firmware settings effective; `vfpass doctor` compares them "
             "(sriov-firmware, firmware-settings)";
    default:
      return searchLog(pf);
  }
}

}  // namespace

std::string searchLog(const PciAddress& pf) {
  return "find the cause in the kernel log: `dmesg | grep " + toString(pf) + "`";
}

std::string vfCountText(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " VF" : " VFs");
}

std::string creationRemedy(const PciAddress& pf) {
  return searchLog(pf) +
         ". \"not enough MMIO resources for SR-IOV\" or \"IOV BARS not allocated\": enable SR-IOV "
         "and Above 4G Decoding in the system's firmware (BIOS); if they are enabled, the kernel "
         "argument pci=realloc lets the kernel enlarge memory windows that the BIOS made too "
         "small. \"bus ... out of range\": enable SR-IOV and ARI in the BIOS, or use a slot below "
         "a port with more bus numbers. Lines of the driver, such as mlx5_core: request fewer VFs "
         "(virtual-function-count in host.yaml). `vfpass doctor` checks the firmware's settings "
         "(sriov-firmware, vf-count)";
}

Error countRefused(const Root& root, const PciAddress& pf, std::size_t count,
                   const WriteError& refusal, const std::vector<std::string>& logged) {
  const std::string reason = errnoText(refusal.number());
  const std::string what = toString(pf) + (count == 0 ? ": cannot remove the VFs"
                                                      : ": cannot create " + vfCountText(count));
  switch (refusal.number()) {
    case EBUSY:
      return Error(toString(pf) + ": cannot change the VF count: the driver is busy: " + reason +
                       quoted(logged),
                   "wait until nothing else configures this PF (NetworkManager, netplan, "
                   "systemd.link, an operator, a devlink mode change), then try again");
    case ENOENT:
      return withoutDriver(root, pf, toString(pf) + ": cannot change the VF count", reason);
    case EPERM:
    case EACCES:
    case EROFS:
      return refusal;
    default:
      return Error(what + ": " + reason + quoted(logged),
                   count == 0 ? searchLog(pf) : remedyFor(pf, refusal.number()));
  }
}

std::optional<Error> enablingRefused(const PciAddress& pf, std::size_t count,
                                     const std::vector<std::string>& logged) {
  std::vector<std::string> failures;
  std::ranges::copy_if(logged, std::back_inserter(failures), [](const std::string& message) {
    return message.find("failed to enable VF ") != std::string::npos;
  });
  if (failures.empty()) {
    return std::nullopt;
  }
  const std::string which = count == 1
                                ? "it, and it was"
                                : (failures.size() == 1 ? "one" : std::to_string(failures.size())) +
                                      std::string(" of them, and all were");
  return Error(toString(pf) + ": requested " + vfCountText(count) +
                   ", but the card's firmware did not enable " + which + " removed again" +
                   quoted(failures),
               searchLog(pf) + "; request fewer VFs (" + countSetting +
                   "), and if the firmware refuses a single VF, too, power-cycle the machine");
}

}  // namespace vfpass::host
