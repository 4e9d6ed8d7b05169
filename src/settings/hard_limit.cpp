#include <algorithm>

#include "parts.hpp"
#include "vfpass/base/version_text.hpp"

namespace vfpass::settings {
namespace {

// Since this major version libvirt itself counts RAM once for each VFIO device behind a virtual
// IOMMU; earlier releases are only known to count it once.
constexpr unsigned countsDevicesSince = 9;

std::uint64_t mappings(const Input& input) {
  const std::size_t devices = input.devices.size() + input.domain.foreignDevices;
  return input.domain.viommu ? std::clamp<std::uint64_t>(devices, 1, 64) : 1;
}

}  // namespace

void proposeHardLimit(const Input& input, std::vector<DomainSetting>& settings) {
  const std::uint64_t times = mappings(input);
  const std::uint64_t needed = input.domain.bytes * times + gibibyte;
  DomainSetting setting{"hard-limit", "<hard_limit> of " + amount(needed),
                        "VFIO pins all " + amount(input.domain.bytes) + " of guest memory" +
                            (times > 1 ? ", once for each of " + std::to_string(times) +
                                             " devices behind the virtual IOMMU"
                                       : "") +
                            ", and QEMU needs about 1 GiB in addition"};
  if (input.domain.hardLimit && *input.domain.hardLimit < needed) {
    setting.standing = SettingStanding::administrators;
    setting.reason +=
        "; the domain has " + amount(*input.domain.hardLimit) + ", with which it fails to start";
    settings.push_back(setting);
  } else if (!input.domain.hardLimit && times > 1 &&
             isOlder(input.versions.libvirt, {countsDevicesSince, 0})) {
    setting.reason += "; libvirt " + versionText(input.versions.libvirt) + " counts it only once";
    setting.edit =
        DomainEdit{setting.name, EditPlace::memtune, {kibibyteElement("hard_limit", needed)}};
    settings.push_back(setting);
  }
}

}  // namespace vfpass::settings
