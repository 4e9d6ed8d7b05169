#include "readers.hpp"

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace vfpass::config {
namespace {

// On an IPoIB PF the kernel can set only link state and GUIDs (drivers/infiniband/ulp/ipoib,
// ipoib_netdev_ops_pf) and refuses these attributes. They are an error in the mapping, because
// silently ignoring a VLAN would break isolation.
bool isEthernetOnly(Attribute attribute) {
  return attribute != Attribute::mac && !existsOn(attribute, true);
}

Node* findAttribute(Node& node, Attribute attribute) { return find(node, toString(attribute)); }

void readMac(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const value = find(node, "mac");
  const auto text = textOf(value);
  if (!text || *text == "auto") {
    return;
  }
  if (*text == "keep") {
    vf.macAutomatic = false;
    vf.macKept = true;
    return;
  }
  const auto mac = parseMacAddress(*text);
  if (!mac) {
    problems.refuse(*value, "expected a MAC address, found " + describe(*value));
  } else if (mac->isZero()) {
    // The kernel accepts it, and the guest's driver then generates a new one at every boot.
    problems.refuse(*value, "with the zero MAC address the guest generates a new one at each boot",
                    "use `auto` for a stable address");
  } else if (mac->isMulticast()) {
    problems.refuse(*value, toString(*mac) + " is a multicast address, which no device can have",
                    "use an address with an even first byte");
  } else {
    vf.macAutomatic = false;
    vf.settings.mac = mac;
  }
}

void readVlan(Node& node, MappedVf& vf) {
  Node* const block = findSound(node, "vlan");
  const auto id = block == nullptr ? std::nullopt : unsignedOf(find(*block, "id"));
  if (!id) {
    return;
  }
  Vlan vlan;
  vlan.id = static_cast<std::uint16_t>(*id);
  vlan.qos = static_cast<std::uint8_t>(unsignedOf(find(*block, "qos")).value_or(0));
  vlan.protocol = parseVlanProtocol(textOf(find(*block, "protocol")).value_or("802.1Q"))
                      .value_or(VlanProtocol::dot1q);
  vf.settings.vlan = vlan;
}

void readRate(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const block = findSound(node, "rate");
  if (block == nullptr) {
    return;
  }
  const Rate rate{unsignedOf(find(*block, "min")).value_or(0),
                  unsignedOf(find(*block, "max")).value_or(0)};
  if (rate.max != 0 && rate.min > rate.max) {
    problems.refuse(*find(*block, "min"), "expected a minimum rate of at most " +
                                              std::to_string(rate.max) + " Mbit/s (`max`), found " +
                                              std::to_string(rate.min));
  }
  vf.settings.rate = rate;
}

void readGuid(Node& block, std::string_view key, std::optional<Guid>& guid, bool& automatic,
              ProblemList& problems) {
  Node* const value = find(block, key);
  const auto text = textOf(value);
  if (value == nullptr || text == "auto") {
    automatic = true;
    return;
  }
  guid = text ? parseGuid(*text) : std::nullopt;
  if (text && (!guid || !guid->isUsable())) {
    problems.refuse(*value, "a GUID of all zeros or all ones is invalid",
                    "use `auto` for a stable GUID");
  }
}

void refuseEthernetAttributes(Node& node, ProblemList& problems) {
  for (const Attribute attribute : allAttributes) {
    Node* const value = isEthernetOnly(attribute) ? findAttribute(node, attribute) : nullptr;
    if (value != nullptr) {
      problems.refuse(*value,
                      "`" + std::string(toString(attribute)) +
                          "` does not apply to an InfiniBand VF (this one has `infiniband:`)",
                      "remove it; the subnet manager's partition keys isolate InfiniBand guests");
    }
  }
  Node* const mac = find(node, "mac");
  if (const auto text = textOf(mac); text && text != "auto") {
    problems.refuse(*mac, "an InfiniBand VF (this one has `infiniband:`) has no MAC address",
                    "remove `mac:`, or remove `infiniband:`");
  }
}

void readInfiniband(Node& node, Node& block, MappedVf& vf, ProblemList& problems) {
  readGuid(block, "node-guid", vf.settings.nodeGuid, vf.nodeGuidAutomatic, problems);
  readGuid(block, "port-guid", vf.settings.portGuid, vf.portGuidAutomatic, problems);
  vf.guidsAutomatic = vf.nodeGuidAutomatic || vf.portGuidAutomatic;
  refuseEthernetAttributes(node, problems);
}

void readEthernet(Node& node, MappedVf& vf, ProblemList& problems) {
  readMac(node, vf, problems);
  readVlan(node, vf);
  readRate(node, vf, problems);
}

std::optional<bool> oneWord(const Node* value, const std::optional<bool>& neutral) {
  const auto read = booleanOf(value);
  return read ? read : neutral;
}

std::optional<LinkState> oneWord(const Node* value, const std::optional<LinkState>& neutral) {
  const auto read = parseLinkState(textOf(value).value_or(""));
  return read ? read : neutral;
}

// The schema has the limits.
template <std::unsigned_integral Number>
std::optional<Number> oneWord(const Node* value, const std::optional<Number>& neutral) {
  const auto read = unsignedOf(value);
  return read ? std::optional(static_cast<Number>(*read)) : neutral;
}

template <typename Value>
constexpr bool isOneWord = std::unsigned_integral<Value> || std::is_same_v<Value, LinkState>;

// Calls `visit(row)` for the attributes whose value is one word. Without an entry in the mapping
// they get their neutral value, if they have one.
template <typename Visit>
void forEachWord(bool infiniband, Visit visit) {
  forEachAttribute([&]<typename Value>(const AttributeRow<Value>& row) {
    if constexpr (isOneWord<Value>) {
      if (existsOn(row.attribute, infiniband)) {
        visit(row);
      }
    }
  });
}

// Attributes that the file sets, and always the address, by which vfpass identifies a VF, unless
// the VF keeps its own.
std::set<Attribute> stated(const Node& node, const MappedVf& vf, bool infiniband) {
  std::set<Attribute> attributes;
  for (const Attribute attribute : allAttributes) {
    if (find(node, toString(attribute)) != nullptr) {
      attributes.insert(attribute);
    }
  }
  if (infiniband) {
    attributes.insert({Attribute::nodeGuid, Attribute::portGuid});
  }
  if (infiniband || vf.macKept) {
    attributes.erase(Attribute::mac);
  } else {
    attributes.insert(Attribute::mac);
  }
  return attributes;
}

std::set<Attribute> withDefaults(std::set<Attribute> attributes, bool infiniband) {
  forEachWord(infiniband, [&](const auto& row) {
    if (row.neutral(infiniband)) {
      attributes.insert(row.attribute);
    }
  });
  return attributes;
}

void readRequired(Node& node, MappedVf& vf, bool infiniband, ProblemList& problems) {
  const std::set<Attribute> statedHere = stated(node, vf, infiniband);
  Node* const list = findSound(node, "required");
  if (list == nullptr) {
    vf.required = statedHere;
    return;
  }
  const std::set<Attribute> possible = withDefaults(statedHere, infiniband);
  for (auto& item : list->items) {
    const auto attribute = parseAttribute(textOf(&item).value_or(""));
    if (!attribute) {
      continue;
    }
    if (!possible.contains(*attribute)) {
      problems.refuse(item, "`" + item.text + "` is required, but this VF does not set it",
                      "add `" + item.text + ":`, or remove it from `required:`");
    }
    vf.required.insert(*attribute);
  }
}

/// Reads the attributes to be set through the PF's driver, with their defaults, and `required:`.
void readAttributes(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const block = find(node, "infiniband");
  const bool infiniband = block != nullptr;
  if (infiniband) {
    readInfiniband(node, *block, vf, problems);
  } else {
    readEthernet(node, vf, problems);
  }
  forEachWord(infiniband, [&](const auto& row) {
    Node* const value = find(node, row.name);
    // An adopted VF keeps what the file leaves out.
    const auto left = vf.adopt ? std::nullopt : row.neutral(infiniband);
    vf.settings.*row.member = oneWord(value, left);
    if (value != nullptr && row.kept && !(vf.settings.*row.member)) {
      vf.automatic.insert(row.attribute);
    }
  });
  readRequired(node, vf, infiniband, problems);
}

void readPf(Node& node, const MappingContext& context, MappedVf& vf, ProblemList& problems) {
  Node* const block = find(node, "pf");
  vf.pf = readPfSelector(block, problems).value_or(PfSelector{});
  if (vf.pf.near && !context.functionNames.contains(*vf.pf.near)) {
    const std::vector<std::string> known(context.functionNames.begin(),
                                         context.functionNames.end());
    const std::string hint = suggestion(*vf.pf.near, known);
    problems.refuse(*find(*block, "near"), "no entry named `" + *vf.pf.near + "` in `gpus:`",
                    hint.empty() ? "add it to `gpus:`" : hint);
  }
}

void checkTrust(Node& node, const MappingContext& context, const MappedVf& vf,
                ProblemList& problems) {
  if (vf.settings.trust.value_or(false) && !context.allow.contains(Allowance::trust)) {
    problems.refuse(*find(node, "trust"),
                    "a trusted VF can change its MAC address and see other guests' traffic",
                    "if this is intended, add `trust` to `allow:`");
  }
}

void readInterface(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const value = find(node, "interface");
  vf.interfaceForm = booleanOf(value).value_or(false);
  if (!vf.interfaceForm) {
    return;
  }
  const auto& vlan = vf.settings.vlan;
  if (find(node, "infiniband") != nullptr) {
    // IPoIB has no ndo_set_vf_mac, which libvirt calls for every such <interface>.
    problems.refuse(*value, "an InfiniBand VF cannot use <interface>: it has no MAC address",
                    "remove `interface:`");
  } else if (vlan && (vlan->qos != 0 || vlan->protocol != VlanProtocol::dot1q)) {
    // libvirt's <interface type='hostdev'> sets one 802.1Q tag with priority 0.
    problems.refuse(*value, "an <interface> supports neither VLAN priority nor 802.1ad",
                    "remove `interface:`, or `qos` and `protocol` from `vlan:`");
  } else if (vf.macKept) {
    problems.refuse(*value, "an <interface> cannot keep the VF's MAC: libvirt sets one",
                    "remove `interface:`, or `mac: keep`");
  }
}

void readTeaming(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const teaming = findSound(node, "teaming");
  if (teaming == nullptr) {
    return;
  }
  vf.teamingWith = textOf(find(*teaming, "with"));
  if (vf.macKept) {
    problems.refuse(*teaming, "a teamed VF cannot keep its MAC: it needs that of its standby",
                    "remove `teaming:`, or `mac: keep`");
  }
}

// Why a VF cannot migrate by VFIO, with the remedy; an empty reason: it can.
std::pair<std::string, std::string> migrationFault(const Node& node, const MappedVf& vf) {
  if (find(node, "infiniband") != nullptr) {
    return {"an InfiniBand VF cannot migrate: the card's firmware saves only Ethernet VFs",
            "remove `migration:`, or remove `infiniband:`"};
  }
  if (vf.teamingWith) {
    return {"a teamed VF does not migrate: QEMU unplugs it before the migration",
            "remove `migration:`, or remove `teaming:`"};
  }
  if (vf.adopt) {
    return {
        "`migration: vfio` writes <driver> into the device's element, and `adopt: true` leaves "
        "the element as it is",
        "remove one of them"};
  }
  if (vf.managed) {
    // It has to be set before a driver is bound (devlink-port.rst).
    return {
        "vfpass makes a VF migratable before it binds the driver, and with `managed: yes` "
        "libvirt binds it",
        "remove `managed:`, or `migration:`"};
  }
  return {};
}

void readMigration(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const value = find(node, "migration");
  vf.migrates = textOf(value) == "vfio";
  if (!vf.migrates) {
    return;
  }
  if (const auto [reason, remedy] = migrationFault(node, vf); !reason.empty()) {
    problems.refuse(*value, reason, remedy);
  }
}

// A name is matched by MAC address (systemd.link, netplan).
void readGuestName(Node& node, Node& block, MappedVf& vf, ProblemList& problems) {
  Node* const name = find(block, "name");
  vf.guest.name = textOf(name);
  if (!vf.guest.name) {
    return;
  }
  if (find(node, "infiniband") != nullptr) {
    // IPoIB's hardware address begins with a queue pair number.
    problems.refuse(
        *name,
        "an InfiniBand VF cannot be named: the beginning of its hardware address changes "
        "whenever its driver is loaded",
        "remove `name:`");
  } else if (vf.macKept) {
    problems.refuse(*name, "a VF with `mac: keep` cannot be named: vfpass does not know its MAC",
                    "remove `name:`, or `mac: keep`");
  } else if (vf.teamingWith) {
    problems.refuse(*name, "a teamed VF cannot be named: the interfaces of its team have its MAC",
                    "remove `name:`");
  } else if (const auto fault = guestNameFault(*vf.guest.name)) {
    problems.refuse(*name, describe(*name) + " cannot be an interface's fixed name: " + *fault,
                    "choose another one, such as rail0");
  }
}

void readGuest(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const block = findSound(node, "guest");
  if (block == nullptr) {
    return;
  }
  Node* const address = find(*block, "address");
  vf.guest.address = textOf(address);
  vf.guest.mtu = unsignedOf(find(*block, "mtu"));
  readGuestName(node, *block, vf, problems);
  if (!vf.guest.address) {
    return;
  }
  if (const auto fault = guestAddressFault(*vf.guest.address)) {
    problems.refuse(*address, describe(*address) + " is not a valid guest address: " + *fault);
  }
}

}  // namespace

namespace {

// `topology: mirror` and `index: auto` decide what the domain's own element has decided already.
void readAdopt(Node& node, const MappingContext& context, MappedVf& vf, ProblemList& problems) {
  Node* const value = find(node, "adopt");
  vf.adopt = booleanOf(value).value_or(false);
  if (vf.adopt && !vf.index) {
    problems.refuse(*value, "an entry with `adopt: true` needs the VF's number",
                    "add `index:`; `vfpass vf list` shows which VF the domain has");
  }
  checkAdoptedTopology(value, vf.adopt, context, problems);
}

}  // namespace

void checkAdoptedTopology(Node* value, bool adopt, const MappingContext& context,
                          ProblemList& problems) {
  if (adopt && context.topology != "flat") {
    problems.refuse(*value,
                    "`adopt: true` leaves the device at its place in the guest, and `topology: " +
                        context.topology + "` moves it",
                    "add `topology: flat` to the mapping");
  }
}

MappedVf readVf(Node& node, const MappingContext& context, ProblemList& problems) {
  MappedVf vf;
  vf.place = problems.place(node.position);
  vf.name = textOf(find(node, "name")).value_or("");
  readPf(node, context, vf, problems);
  vf.index = unsignedOf(find(node, "index"));
  readAdopt(node, context, vf, problems);
  readAttributes(node, vf, problems);
  checkTrust(node, context, vf, problems);
  vf.managed = booleanOf(find(node, "managed")).value_or(false);
  readInterface(node, vf, problems);
  readTeaming(node, vf, problems);
  readMigration(node, vf, problems);
  readGuest(node, vf, problems);
  return vf;
}

}  // namespace vfpass::config
