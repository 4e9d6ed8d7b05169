// Attach and detach on any domain XML that vfpass does not manage yet.
// covers: src/domain/place_devices.cpp src/domain/add_remove_elements.cpp src/domain/xml_source.cpp
// src/domain/document.cpp -conflict -requireOneTree -requireConsistentLeases
#include <algorithm>

#include "fake/seal_key.hpp"
#include "fuzz/target.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::fuzz {
namespace {

Lease leaseFor(const domain::ParsedDomain& parsed, const GuestPlacement& place) {
  Lease lease;
  lease.domain = parsed.uuid;
  lease.domainName = parsed.name;
  lease.entry = "rail0";
  lease.pf = {0, 0x3b, 0, 0};
  lease.pfPath = "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  lease.device = {0, 0x3b, 0, 2};
  lease.original.driver = "mlx5_core";
  lease.guest = place;
  lease.generation = 1;
  return lease;
}

// The second one as an <interface>, which libvirt configures.
Lease interfaceFor(const domain::ParsedDomain& parsed, const GuestPlacement& place) {
  Lease lease = leaseFor(parsed, place);
  LeasedVf vf;
  vf.index = 1;
  vf.interfaceForm = true;
  vf.settings.mac = MacAddress{{0x52, 0x54, 0, 0x12, 0x34, 0x56}};
  vf.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  lease.part = vf;
  lease.entry = "rail1";
  lease.device.function = 3;
  return lease;
}

// As in a mirrored tree: the port is a controller that all leases share.
Lease mirrored(Lease lease) {
  if (const auto port = lease.guest.port) {
    GuestController controller;
    controller.model = ControllerModel::rootPort;
    controller.index = port->index;
    controller.address = port->address;
    lease.guest.controllers = {controller};
    lease.guest.port.reset();
  }
  return lease;
}

std::string edited(const std::string& xml, const std::vector<Lease>& leases) {
  return domain::withLeases(xml, leases, domain::builtInTemplates(), fake::sealKey());
}

// Attach refuses these (objectToClaims()). An element with the alias that `detach --keep` leaves
// would be taken back instead of added.
bool claimsAny(const domain::ParsedDomain& parsed, const std::vector<Lease>& leases) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    return std::ranges::find(parsed.claims, lease.device, &Claim::device) != parsed.claims.end();
  });
}

// Attach to a running domain, also to one with elements of ours that its configuration lacks.
void checkRunning(const std::string& live) {
  const auto bare = accepted([&] { return edited(live, {}); });
  for (const std::string& config : {std::string(), live, bare.value_or("")}) {
    const auto places = accepted([&] { return domain::placeInRunning(live, config); });
    for (const auto& place : places.value_or(std::vector<GuestPlacement>{})) {
      require(domain::fitsRunning(live, place), "a place in the running domain is free");
    }
  }
}

}  // namespace

void runTarget(std::string_view input) {
  const std::string xml(input);
  const auto parsed = accepted([&] { return domain::parseDomain(xml); });
  if (!parsed) {
    return;
  }
  checkRunning(xml);
  if (accepted([&] { return edited(xml, {}); }) != xml) {
    return;  // it has elements of ours
  }
  const auto places = accepted([&] { return domain::placeDevices(xml, 2); });
  if (!places) {
    return;
  }
  const std::vector<Lease> leases{leaseFor(*parsed, places->front()),
                                  mirrored(interfaceFor(*parsed, places->back()))};
  if (claimsAny(*parsed, leases)) {
    return;
  }
  const auto attached = accepted([&] { return edited(xml, leases); });
  if (!attached) {
    return;
  }
  require(domain::mayBeManaged(*attached), "the quick check finds what attach has written");
  require(domain::carriesLeases(*attached, leases, fake::sealKey()), "attach writes the lease");
  require(domain::isSealed(domain::parseDomain(*attached), fake::sealKey()), "attach seals it");
  require(domain::elementDifferences(*attached, leases).empty(), "attach writes its elements");
  require(!domain::fitsRunning(*attached, places->front()), "attach takes the place");
  require(domain::devicesOfOurs(*attached).size() == leases.size(), "attach adds its devices");
  static_cast<void>(domain::xmlDiff(xml, *attached));
  require(edited(*attached, {}) == xml, "detach restores every byte");
}

}  // namespace vfpass::fuzz
