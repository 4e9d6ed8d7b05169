#pragma once

// One list of members per type, used for both writing and reading so that they always agree. The
// names are the stored format: changing one needs a migration (schema.cpp).

#include "record.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::state {

template <typename Archive>
void fields(Archive& archive, Vlan& vlan) {
  archive("id", vlan.id);
  archive("qos", vlan.qos);
  archive("protocol", vlan.protocol);
}

template <typename Archive>
void fields(Archive& archive, Rate& rate) {
  archive("min", rate.min);
  archive("max", rate.max);
}

template <typename Archive>
void fields(Archive& archive, VfSettings& settings) {
  forEachAttribute([&](const auto& row) { archive(row.name, settings.*row.member); });
}

template <typename Archive>
void fields(Archive& archive, RootPort& port) {
  archive("index", port.index);
  archive("address", port.address);
  archive("multifunction", port.multifunction);
}

template <typename Archive>
void fields(Archive& archive, GuestController& controller) {
  archive("model", controller.model);
  archive("index", controller.index);
  archive("address", controller.address);
  archive("node", controller.node);
  archive("bus-number", controller.busNumber);
  archive("hotplug", controller.hotplug);
}

template <typename Archive>
void fields(Archive& archive, GuestPlacement& guest) {
  archive("address", guest.address);
  archive("port", guest.port);
  archive.orEmpty("controllers", guest.controllers);
}

template <typename Archive>
void fields(Archive& archive, DomainEdit& edit) {
  archive("setting", edit.setting);
  archive("place", edit.place);
  archive("elements", edit.elements);
}

template <typename Archive>
void fields(Archive& archive, VfOriginal& original) {
  archive.driver("driver", original.driver);
  archive.driver("driver-override", original.driverOverride);
  archive("settings", original.settings);
  archive("created", original.created);
}

// The stored format has the members of both kinds; those of the other kind have their defaults and
// are ignored.
template <typename Archive>
void fields(Archive& archive, Lease& lease) {
  LeaseKind kind = kindOf(lease);
  LeasedVf vf = isVf(lease) ? vfOf(lease) : LeasedVf{};
  LeasedFunction function = isVf(lease) ? LeasedFunction{} : std::get<LeasedFunction>(lease.device);
  archive("kind", kind);
  archive("domain", lease.domain);
  archive("domain-name", lease.domainName);
  archive("vf-name", lease.entry);
  archive("pf", lease.pf);
  archive("pf-path", lease.pfPath);
  archive("pf-serial", lease.pfSerial);
  archive("vf-index", vf.index);
  archive("vf", lease.vf);
  archive("vf-count", vf.count);
  archive("infiniband", vf.infiniband);
  archive("settings", vf.settings);
  archive("required", vf.required);
  archive.orEmpty("refused", vf.refused);
  archive("allow", lease.allow);
  archive("managed", lease.managed);
  archive("interface-form", vf.interfaceForm);
  archive("teaming-with", vf.teamingWith);
  archive("vfio-driver", function.vfioDriver);
  archive("persistent", lease.persistent);
  archive("guest", lease.guest);
  archive.orEmpty("edits", lease.edits);
  archive("original", lease.original);
  archive("generation", lease.generation);
  archive("state", lease.state);
  archive("boot-id", lease.bootId);
  if (kind == LeaseKind::virtualFunction) {
    lease.device = std::move(vf);
  } else {
    lease.device = std::move(function);
  }
}

}  // namespace vfpass::state
