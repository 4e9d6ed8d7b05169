#include "metadata_codec.hpp"

#include <algorithm>

#include "attribute_codec.hpp"
#include "our_elements.hpp"
#include "settings_codec.hpp"
#include "vfpass/base/driver_name.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

// More than a guest has room for (256 buses). Each lease is compared with all devices.
constexpr std::size_t maxLeases = 1024;

template <typename Value>
std::string joinNames(const std::set<Value>& values) {
  std::vector<std::string> names;
  for (const auto value : values) {
    names.emplace_back(toString(value));
  }
  return join(names, " ");
}

// The inverse of joinNames().
template <typename Value, typename Parse>
std::set<Value> readNames(pugi::xml_node node, const char* name, Parse parse) {
  std::set<Value> values;
  auto text = readText(node, name);
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const auto value = parse(text.substr(0, end));
    if (!value) {
      throwBadAttribute(node, name);
    }
    values.insert(*value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return values;
}

// The name becomes part of an alias, and libvirt silently drops aliases with other characters.
std::optional<std::string> parseVfName(std::string_view text) {
  const bool valid =
      !text.empty() && text.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string_view::npos;
  return valid ? std::optional(std::string(text)) : std::nullopt;
}

// The hook binds this driver and loads its module, so only known names are accepted.
std::optional<std::string> parseVfioDriver(std::string_view text) {
  return isVfioDriver(text) ? std::optional(std::string(text)) : std::nullopt;
}

void writeController(pugi::xml_node node, const GuestController& controller) {
  writeText(node, "model", std::string(toString(controller.model)));
  writeText(node, "index", std::to_string(controller.index));
  writeText(node, "address", toString(controller.address));
  if (controller.node) {
    writeText(node, "node", std::to_string(*controller.node));
  }
  if (controller.busNumber != 0) {
    writeText(node, "bus-number", std::to_string(controller.busNumber));
  }
  writeFlag(node, "hotplug", controller.hotplug);
}

GuestController readController(pugi::xml_node node) {
  GuestController controller;
  controller.model = readValue(node, "model", parseControllerModel);
  controller.index = readNumber<unsigned>(node, "index", 0xff);
  controller.address = readValue(node, "address", parsePciAddress);
  if (node.attribute("node")) {
    controller.node = readNumber<unsigned>(node, "node", 0xff);
  }
  if (node.attribute("bus-number")) {
    controller.busNumber = readNumber<unsigned>(node, "bus-number", 0xff);
  }
  controller.hotplug = readFlag(node, "hotplug");
  return controller;
}

void writeGuest(pugi::xml_node node, const GuestPlacement& guest) {
  writeText(node, "address", toString(guest.address));
  if (guest.port) {
    writeText(node, "port-index", std::to_string(guest.port->index));
    writeText(node, "port-address", toString(guest.port->address));
    writeFlag(node, "port-multifunction", guest.port->multifunction);
  }
  for (const GuestController& controller : guest.controllers) {
    writeController(node.append_child("vfpass:controller"), controller);
  }
}

GuestPlacement readGuest(pugi::xml_node node) {
  GuestPlacement guest;
  guest.address = readValue(node, "address", parsePciAddress);
  if (node.attribute("port-index")) {
    guest.port = RootPort{readNumber<unsigned>(node, "port-index", 0xff),
                          readValue(node, "port-address", parsePciAddress),
                          readFlag(node, "port-multifunction")};
  }
  for (const auto child : node) {
    if (isOurChild(child, "controller")) {
      guest.controllers.push_back(readController(child));
    }
  }
  return guest;
}

void writeOriginal(pugi::xml_node node, const VfOriginal& original) {
  writeEscaped(node, "driver", original.driver);
  writeEscaped(node, "driver-override", original.driverOverride);
  writeFlag(node, "created", original.created);
  writeSettings(node, original.settings);
}

// An empty name means no driver.
std::string readDriver(pugi::xml_node node, const char* name) {
  const auto driver = parseDriverName(readEscaped(node, name));
  if (!driver) {
    throwBadAttribute(node, name);
  }
  return *driver;
}

VfOriginal readOriginal(pugi::xml_node node) {
  return {readDriver(node, "driver"), readDriver(node, "driver-override"), readSettings(node),
          readFlag(node, "created")};
}

// The format has the attributes of both kinds; those of the other kind have their defaults.
void writeLease(pugi::xml_node node, const Lease& lease) {
  const LeasedVf vf = isVf(lease) ? vfOf(lease) : LeasedVf{};
  const auto* function = std::get_if<LeasedFunction>(&lease.device);
  // The attributes that every lease has; those of a VF have their defaults for a function.
  writeText(node, "name", lease.entry);
  writeText(node, "kind", std::string(toString(kindOf(lease))));
  writeText(node, "generation", std::to_string(lease.generation));
  writeText(node, "pf", toString(lease.pf));
  writeEscaped(node, "pf-path", lease.pfPath);
  writeEscaped(node, "pf-serial", lease.pfSerial);
  writeText(node, "vf-index", std::to_string(vf.index));
  writeText(node, "vf", toString(lease.vf));
  writeText(node, "vf-count", std::to_string(vf.count));
  writeFlag(node, "infiniband", vf.infiniband);
  writeFlag(node, "managed", lease.managed);
  writeFlag(node, "interface", vf.interfaceForm);
  writeFlag(node, "persistent", lease.persistent);
  // What is missing in the XML is missing in the lease.
  if (vf.teamingWith) {
    writeEscaped(node, "teaming-with", *vf.teamingWith);
  }
  if (function != nullptr && function->vfioDriver) {
    writeText(node, "vfio-driver", *function->vfioDriver);
  }
  writeText(node, "required", joinNames(vf.required));
  if (!vf.refused.empty()) {
    writeText(node, "refused", joinNames(vf.refused));
  }
  writeText(node, "allow", joinNames(lease.allow));
  // The structures have elements of their own.
  writeSettings(node.append_child("vfpass:settings"), vf.settings);
  writeGuest(node.append_child("vfpass:guest"), lease.guest);
  writeOriginal(node.append_child("vfpass:original"), lease.original);
  for (const DomainEdit& edit : lease.edits) {
    writeEdit(node.append_child("vfpass:setting"), edit);
  }
}

pugi::xml_node part(pugi::xml_node lease, const char* localName) {
  for (const auto node : lease) {
    if (isOurChild(node, localName)) {
      return node;
    }
  }
  throw badMetadata(std::string("a lease has no <") + localName + ">");
}

LeasedVf readVf(pugi::xml_node node) {
  LeasedVf vf;
  vf.index = readNumber<unsigned>(node, "vf-index");
  vf.count = readNumber<unsigned>(node, "vf-count");
  vf.infiniband = readFlag(node, "infiniband");
  vf.interfaceForm = readFlag(node, "interface");
  if (node.attribute("teaming-with")) {
    vf.teamingWith = readEscaped(node, "teaming-with");
  }
  vf.required = readNames<Attribute>(node, "required", parseAttribute);
  if (node.attribute("refused")) {
    vf.refused = readNames<Attribute>(node, "refused", parseAttribute);
  }
  vf.settings = readSettings(part(node, "settings"));
  return vf;
}

LeasedFunction readFunction(pugi::xml_node node) {
  LeasedFunction function;
  if (node.attribute("vfio-driver")) {
    function.vfioDriver = readValue(node, "vfio-driver", parseVfioDriver);
  }
  return function;
}

Lease readLease(pugi::xml_node node) {
  Lease lease;
  lease.entry = readValue(node, "name", parseVfName);
  if (readValue(node, "kind", parseLeaseKind) == LeaseKind::virtualFunction) {
    lease.device = readVf(node);
  } else {
    lease.device = readFunction(node);
  }
  lease.generation = readNumber<std::uint64_t>(node, "generation");
  lease.pf = readValue(node, "pf", parsePciAddress);
  lease.pfPath = readEscaped(node, "pf-path");
  lease.pfSerial = readEscaped(node, "pf-serial");
  lease.vf = readValue(node, "vf", parsePciAddress);
  lease.managed = readFlag(node, "managed");
  lease.persistent = readFlag(node, "persistent");
  lease.allow = readNames<Allowance>(node, "allow", parseAllowance);
  lease.guest = readGuest(part(node, "guest"));
  lease.original = readOriginal(part(node, "original"));
  lease.edits = readEdits(node);
  return lease;
}

}  // namespace

pugi::xml_node writeMetadata(pugi::xml_node parent, const Uuid& domain,
                             const std::vector<Lease>& leases) {
  auto node = parent.append_child("vfpass:domain");
  writeText(node, "xmlns:vfpass", std::string(metadataNamespace));
  writeText(node, "version", metadataVersion);
  writeText(node, "uuid", toString(domain));
  for (const auto& lease : leases) {
    writeLease(node.append_child("vfpass:lease"), lease);
  }
  return node;
}

Uuid readMetadataOwner(pugi::xml_node metadata) { return readValue(metadata, "uuid", parseUuid); }

std::vector<Lease> readMetadata(pugi::xml_node metadata, const std::string& domainName) {
  if (readText(metadata, "version") != metadataVersion) {
    throwBadAttribute(metadata, "version");
  }
  std::vector<Lease> leases;
  std::set<std::string> names;
  for (const auto node : metadata) {
    if (!isOurChild(node, "lease")) {
      continue;
    }
    if (leases.size() == maxLeases) {
      throw badMetadata("more than " + std::to_string(maxLeases) + " leases");
    }
    leases.push_back(readLease(node));
    leases.back().domain = readMetadataOwner(metadata);
    leases.back().domainName = domainName;
    if (!names.insert(leases.back().entry).second) {
      throw badMetadata("two leases are named '" + leases.back().entry + "'");
    }
  }
  return leases;
}

}  // namespace vfpass::domain
