#include <algorithm>

#include "check.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::size_t namedNics = 8;

std::string describe(const std::vector<std::string>& nics) {
  const auto shown = std::min(nics.size(), namedNics);
  const std::vector<std::string> first(nics.begin(),
                                       nics.begin() + static_cast<std::ptrdiff_t>(shown));
  return join(first, ", ") +
         (shown < nics.size() ? " and " + std::to_string(nics.size() - shown) + " more" : "");
}

}  // namespace

// Once for all of them, instead of in every check.
void checkOtherNics(const View& view, Results& results) {
  std::vector<std::string> mlx4;
  std::vector<std::string> others;
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    if (!hasMlx5Firmware(pf.vendor, pf.driver)) {
      (pf.vendor == mellanox ? mlx4 : others)
          .push_back(nameOf(pf) + " (" + (pf.driver.empty() ? "no driver" : pf.driver) + ")");
    }
  }
  if (!others.empty()) {
    results.waived(describe(others) +
                   ": NICs of other vendors; dpu-mode, firmware-escape, firmware-settings and "
                   "networkmanager-dhcp do not apply, ats and iommu-passthrough only if the NIC "
                   "shows ATS, eswitch only if devlink shows its mode");
  }
  if (!mlx4.empty()) {
    results.waived(
        describe(mlx4) +
        ": ConnectX-3 or older; ats, dpu-mode, eswitch, firmware-escape and "
        "iommu-passthrough do not apply, because its firmware and driver are not mlx5's");
  }
  if (others.empty() && mlx4.empty()) {
    results.waived("every NIC is a ConnectX-4 or later");
  }
}

}  // namespace vfpass::doctor
