#pragma once

// One list of members per type, used for both writing and reading so that they always agree, in
// the database and in the metadata of a domain. The names are the stored format: changing one needs
// a migration (state/schema.cpp) and a new version of the metadata (domain/metadata.cpp).

#include <string>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/model/record.hpp"

namespace vfpass::model {

/// True for a number that fits: libvirt's index of a controller, a bus or a NUMA node of a guest.
inline bool isByte(const unsigned& number) { return number <= 0xffU; }
inline bool isOptionalByte(const std::optional<unsigned>& number) {
  return !number || isByte(*number);
}

inline bool isVlanId(const std::uint16_t& id) { return id <= 4094; }
inline bool isPriority(const std::uint8_t& priority) { return priority <= 7; }

/// The name becomes part of an alias, and libvirt silently drops aliases with other characters.
inline bool isEntryName(const std::string& name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos;
}

/// The hook binds this driver and loads its module, so only known names are accepted.
inline bool isOptionalVfioDriver(const std::optional<std::string>& name) {
  return !name || isVfioDriver(*name);
}

inline bool isSettingName(const std::string& name) {
  return !name.empty() && name.size() <= 32 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

template <typename Archive>
void fields(Archive& archive, Vlan& vlan) {
  archive.checked("id", vlan.id, isVlanId);
  archive.checked("qos", vlan.qos, isPriority);
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
  archive.checked("index", port.index, isByte);
  archive("address", port.address);
  archive("multifunction", port.multifunction);
}

template <typename Archive>
void fields(Archive& archive, GuestController& controller) {
  archive("model", controller.model);
  archive.checked("index", controller.index, isByte);
  archive("address", controller.address);
  archive.checked("node", controller.node, isOptionalByte);
  archive.checked("bus-number", controller.busNumber, isByte);
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
  archive.checked("setting", edit.setting, isSettingName);
  archive("place", edit.place);
  archive("elements", edit.elements);
}

template <typename Archive>
void fields(Archive& archive, VfOriginal& original) {
  archive.driver("driver", original.driver);
  archive.driver("driver-override", original.driverOverride);
  archive("settings", original.settings);
  archive("created", original.created);
  archive("migratable", original.migratable);
}

/// Everything that attach decides about a lease, and so what the metadata of its domain records.
/// The format has the members of both kinds; those of the other kind have their defaults and are
/// ignored.
template <typename Archive>
void terms(Archive& archive, Lease& lease) {
  LeaseKind kind = kindOf(lease);
  LeasedVf vf = isVf(lease) ? vfOf(lease) : LeasedVf{};
  LeasedFunction function = isVf(lease) ? LeasedFunction{} : std::get<LeasedFunction>(lease.part);
  archive("kind", kind);
  archive.checked("vf-name", lease.entry, isEntryName);
  archive("pf", lease.pf);
  archive("pf-path", lease.pfPath);
  archive("pf-serial", lease.pfSerial);
  archive("vf-index", vf.index);
  archive("vf", lease.device);
  archive("vf-count", vf.count);
  archive("infiniband", vf.infiniband);
  archive("settings", vf.settings);
  archive("required", vf.required);
  archive.orEmpty("refused", vf.refused);
  archive("allow", lease.allow);
  archive("managed", lease.managed);
  archive("interface-form", vf.interfaceForm);
  archive("teaming-with", vf.teamingWith);
  archive.checked("migration-driver", vf.migrationDriver, isOptionalVfioDriver);
  archive.checked("vfio-driver", function.vfioDriver, isOptionalVfioDriver);
  archive.checked("nvlink-module", function.nvlinkModule, isOptionalByte);
  archive("persistent", lease.persistent);
  archive("guest", lease.guest);
  archive.orEmpty("adopted-element", lease.adoptedElement);
  archive.orEmpty("edits", lease.edits);
  archive("original", lease.original);
  archive("generation", lease.generation);
  if (kind == LeaseKind::virtualFunction) {
    lease.part = std::move(vf);
  } else {
    lease.part = std::move(function);
  }
}

template <typename Archive>
void fields(Archive& archive, Lease& lease) {
  archive("domain", lease.domain);
  archive("domain-name", lease.domainName);
  terms(archive, lease);
  archive("state", lease.state);
  archive("boot-id", lease.bootId);
  archive.orFalse("activated-partition", lease.activatedPartition);
}

/// The whole lease, including state and boot, as one line of JSON.
std::string encodeLease(const Lease& lease);
/// The exact inverse. Throws as decode().
Lease decodeLease(const JsonReader& json);

/// The lease without its domain, state and boot, as its domain's metadata has it: one line of
/// ASCII, because libvirt indents each line of metadata.
std::string encodeTerms(const Lease& lease);
/// The inverse; the other members have their defaults. Throws as decode().
Lease decodeTerms(const JsonReader& json);

/// One member of the list `edits` of a lease. Throws as decode().
DomainEdit decodeEdit(const JsonReader& json);

}  // namespace vfpass::model
