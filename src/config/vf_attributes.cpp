#include "vf_attributes.hpp"

#include <type_traits>

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

void readVlan(const Node& node, MappedVf& vf) {
  const Node* const block = findSound(node, "vlan");
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
  Node* const block = find(node, "rate");
  if (block == nullptr || block->refused) {
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

template <typename Value>
constexpr bool isOneWord = std::is_same_v<Value, bool> || std::is_same_v<Value, LinkState>;

// Calls `visit(row)` for the attributes whose value is one word. Without an entry in the mapping
// they get their neutral value.
template <typename Visit>
void forEachWord(bool infiniband, Visit visit) {
  forEachAttribute([&]<typename Value>(const AttributeRow<Value>& row) {
    if constexpr (isOneWord<Value>) {
      if (row.neutral(infiniband)) {
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
  forEachWord(infiniband, [&](const auto& row) { attributes.insert(row.attribute); });
  return attributes;
}

void readRequired(Node& node, MappedVf& vf, bool infiniband, ProblemList& problems) {
  const std::set<Attribute> statedHere = stated(node, vf, infiniband);
  Node* const list = find(node, "required");
  if (list == nullptr || list->refused) {
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

}  // namespace

void readAttributes(Node& node, MappedVf& vf, ProblemList& problems) {
  Node* const block = find(node, "infiniband");
  const bool infiniband = block != nullptr;
  if (infiniband) {
    readInfiniband(node, *block, vf, problems);
  } else {
    readEthernet(node, vf, problems);
  }
  forEachWord(infiniband, [&](const auto& row) {
    vf.settings.*row.member = oneWord(find(node, row.name), row.neutral(infiniband));
  });
  readRequired(node, vf, infiniband, problems);
}

}  // namespace vfpass::config
