#include "vfpass/apply/quarantine_places.hpp"

namespace vfpass::apply {

std::vector<QuarantinedDevice> locate(std::vector<QuarantinedDevice> devices, Kernel& kernel) {
  for (QuarantinedDevice& each : devices) {
    if (each.identity.empty()) {
      continue;
    }
    each.found = kernel.identityOf(each.device, std::nullopt);
    if (each.found != each.identity) {
      each.elsewhere = kernel.findIdentity(each.identity);
    }
  }
  return devices;
}

}  // namespace vfpass::apply
