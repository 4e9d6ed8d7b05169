#include "vfpass/apply/quarantine_places.hpp"

#include <algorithm>
#include <set>

#include "device_records.hpp"

namespace vfpass::apply {
namespace {

void addPlace(const PciAddress& address, const std::string& identity,
              std::vector<QuarantinedDevice>& devices) {
  for (QuarantinedDevice& each : devices) {
    if (each.identity == identity &&
        std::ranges::find(each.elsewhere, address) == each.elsewhere.end()) {
      each.elsewhere.push_back(address);
    }
  }
}

// By address, which is enough to refuse it.
bool isInQuarantine(const Lease& lease, const std::vector<QuarantinedDevice>& devices) {
  return std::ranges::any_of(devices, [&](const QuarantinedDevice& each) {
    return each.device == lease.device || each.device == lease.pf;
  });
}

}  // namespace

std::vector<QuarantinedDevice> locate(std::vector<QuarantinedDevice> devices, Kernel& kernel) {
  std::set<std::string> missing;
  for (QuarantinedDevice& each : devices) {
    if (each.identity.empty()) {
      continue;
    }
    each.found = kernel.identityOf(each.device, std::nullopt);
    if (each.found != each.identity) {
      missing.insert(each.identity);
    }
  }
  if (missing.empty()) {
    return devices;
  }
  auto places = kernel.findIdentities(missing);
  for (QuarantinedDevice& each : devices) {
    if (!each.identity.empty() && each.found != each.identity) {
      each.elsewhere = places[each.identity];
    }
  }
  return devices;
}

std::vector<QuarantinedDevice> locateAmong(std::vector<QuarantinedDevice> devices,
                                           const std::vector<Lease>& leases, Tools& tools) {
  if (std::ranges::all_of(devices, &std::string::empty, &QuarantinedDevice::identity)) {
    return devices;
  }
  CardIdentities identities(tools.kernel);
  for (const Lease& lease : leases) {
    if (isInQuarantine(lease, devices)) {
      continue;
    }
    const std::string own = identities.ofDevice(lease);
    const auto use = tools.database.deviceUse(lease.device);
    // The card that attach has looked for everywhere: it can be one of several with one number.
    const bool isKnown = use && use->domain == lease.domain && use->identity == own;
    if (own.empty() || isKnown) {
      continue;
    }
    addPlace(lease.device, own, devices);
    if (lease.pf != lease.device) {
      addPlace(lease.pf, identities.ofCard(lease), devices);
    }
  }
  return devices;
}

}  // namespace vfpass::apply
