#include "vfpass/plan/judge_peer_mapping.hpp"

#include <string>

#include "vfpass/version.hpp"

namespace vfpass::plan {
namespace {

constexpr Version kernelWithDmaBuf{6, 19};
constexpr Version qemuWithDmaBuf{11, 0};
constexpr const char* useContainers =
    "remove `iommu-backend: iommufd` from the mapping and attach it, remove iommufd='yes' from the "
    "<driver> of each <hostdev> and <iommufd enabled='yes'/> from the domain, then restart it: "
    "type "
    "1 containers map BARs";

}  // namespace

void judgePeerMapping(PeerMapping& mapping, const std::optional<Version>& kernel,
                      const std::optional<Version>& qemu) {
  if (mapping.backend == VfioBackend::container) {
    mapping.possible = true;
    mapping.reason = "VFIO containers (type 1) map each device's BARs for the other devices";
    return;
  }
  const bool tooOld = isOlder(kernel, kernelWithDmaBuf) || isOlder(qemu, qemuWithDmaBuf);
  const std::string installed = "Linux " + versionText(kernel) + " and QEMU " + versionText(qemu);
  if (tooOld) {
    mapping.possible = false;
    mapping.reason = "iommufd maps BARs since Linux 6.19 and QEMU 11.0; this host has " + installed;
  } else if (kernel && qemu) {
    mapping.possible = true;
    mapping.reason =
        "iommufd maps each device's BARs for the other devices as DMA-BUFs with " + installed;
  } else {
    mapping.reason = "iommufd maps BARs since Linux 6.19 and QEMU 11.0; this host has " + installed;
  }
  mapping.remedy = mapping.possible.value_or(false) ? "" : useContainers;
}

}  // namespace vfpass::plan
