#include "vfpass/plan/judge_peer_mapping.hpp"

#include <string>

#include "vfpass/base/version.hpp"

namespace vfpass::plan {
namespace {

constexpr Version kernelWithDmaBuf{6, 19};
constexpr Version qemuWithDmaBuf{11, 0};
constexpr const char* useContainers =
    "take iommufd='yes' out of the <driver> of each <hostdev> and <iommufd enabled='yes'/> out of "
    "the domain, and start it anew: type 1 containers map BARs";

}  // namespace

void judgePeerMapping(PeerMapping& mapping, const std::optional<Version>& kernel,
                      const std::optional<Version>& qemu) {
  if (mapping.backend == VfioBackend::container) {
    mapping.possible = true;
    mapping.reason = "VFIO containers (type 1) map each device's BARs for the others";
    return;
  }
  const bool tooOld = isOlder(kernel, kernelWithDmaBuf) || isOlder(qemu, qemuWithDmaBuf);
  const std::string here = "Linux " + versionText(kernel) + " and QEMU " + versionText(qemu);
  if (tooOld) {
    mapping.possible = false;
    mapping.reason = "iommufd maps BARs from Linux 6.19 and QEMU 11.0 on; here are " + here;
  } else if (kernel && qemu) {
    mapping.possible = true;
    mapping.reason = "iommufd maps each device's BARs for the others as DMA-BUFs with " + here;
  } else {
    mapping.reason = "iommufd maps BARs from Linux 6.19 and QEMU 11.0 on; here are " + here;
  }
  mapping.remedy = mapping.possible.value_or(false) ? "" : useContainers;
}

}  // namespace vfpass::plan
