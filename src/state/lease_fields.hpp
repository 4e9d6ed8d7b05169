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

template <typename Archive>
void fields(Archive& archive, Lease& lease) {
  archive("kind", lease.kind);
  archive("domain", lease.domain);
  archive("domain-name", lease.domainName);
  archive("vf-name", lease.entry);
  archive("pf", lease.pf);
  archive("pf-path", lease.pfPath);
  archive("pf-serial", lease.pfSerial);
  archive("vf-index", lease.vfIndex);
  archive("vf", lease.vf);
  archive("vf-count", lease.vfCount);
  archive("infiniband", lease.infiniband);
  archive("settings", lease.settings);
  archive("required", lease.required);
  archive("allow", lease.allow);
  archive("managed", lease.managed);
  archive("interface-form", lease.interfaceForm);
  archive("teaming-with", lease.teamingWith);
  archive("vfio-driver", lease.vfioDriver);
  archive("persistent", lease.persistent);
  archive("guest", lease.guest);
  archive.orEmpty("edits", lease.edits);
  archive("original", lease.original);
  archive("generation", lease.generation);
  archive("state", lease.state);
  archive("boot-id", lease.bootId);
}

}  // namespace vfpass::state
