#include "attach_decisions.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/plan/plan_attach.hpp"

// Header-only, because users rely on the hash (`auto` gives the same address on every host), and
// XXH3's values are frozen since xxHash 0.8.0.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vfpass::plan {
namespace {

std::uint64_t hashOf(const Uuid& domain, const std::string& entry, const std::string& role,
                     unsigned attempt) {
  const std::string key =
      "vfpass/1/" + role + "/" + toString(domain) + "/" + entry + "/" + std::to_string(attempt);
  return XXH3_64bits(key.data(), key.size());
}

MacAddress macFrom(std::uint64_t hash) {
  MacAddress mac;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    mac.bytes[i] = static_cast<std::uint8_t>(hash >> (8 * i));
  }
  // IEEE 802: bit 1 of the first byte means "locally administered", bit 0 "multicast".
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] & 0xfcU) | 0x02U);
  return mac;
}

Guid guidFrom(std::uint64_t hash) {
  // EUI-64 has the same two bits in its first byte.
  const std::uint64_t first = ((hash >> 56U) & 0xfcU) | 0x02U;
  return Guid{(hash & 0x00ffffffffffffffU) | first << 56U};
}

template <typename Value, typename Make>
Value firstFree(Make make, const std::function<bool(const Value&)>& taken) {
  for (unsigned attempt = 0;; ++attempt) {
    const Value value = make(attempt);
    if (!taken(value)) {
      return value;
    }
  }
}

}  // namespace

MacAddress derivedMac(const Uuid& domain, const std::string& entry,
                      const std::function<bool(const MacAddress&)>& taken) {
  return firstFree<MacAddress>(
      [&](unsigned attempt) { return macFrom(hashOf(domain, entry, "mac", attempt)); }, taken);
}

Guid derivedGuid(const Uuid& domain, const std::string& entry, GuidRole role,
                 const std::function<bool(const Guid&)>& taken) {
  const std::string roleName = role == GuidRole::node ? "node-guid" : "port-guid";
  return firstFree<Guid>(
      [&](unsigned attempt) { return guidFrom(hashOf(domain, entry, roleName, attempt)); }, taken);
}

namespace {

// Why libvirt and QEMU would not team a device with this interface; empty: they would. Only QEMU's
// virtio-net has `failover`.
std::string standbyFault(const DomainInterface& interface) {
  if (interface.model != "virtio") {
    return "its model is " + (interface.model.empty() ? "not set" : printable(interface.model)) +
           " instead of virtio";
  }
  if (interface.teaming != "persistent") {
    return "it has no <teaming type='persistent'/>";
  }
  return interface.mac ? "" : "it has no MAC";
}

std::string editRemedy(const AttachInput& input, const std::string& alias) {
  return "give one virtio interface of the domain <teaming type='persistent'/> and <alias name='" +
         alias + "'/> (`virsh edit " + shellArgument(input.domainName) + "`), or remove `teaming:`";
}

// The MAC that the VF of this entry (with `teaming:`) must have: that of its standby interface in
// the domain. nullopt with an objection if the domain has no such interface, if it cannot be a
// standby, or if the entry states another MAC. The guest's driver looks for the standby with the
// VF's permanent address (failover_get_bymac, net/core/failover.c); with another one the guest has
// two separate interfaces.
std::optional<MacAddress> teamedMac(const AttachInput& input, const MappedVf& entry,
                                    std::vector<Objection>& objections) {
  const std::string alias = standbyAlias(*entry.teamingWith);
  const std::string place = toString(entry.place) + ": ";
  const auto standby = std::ranges::find(input.interfaces, alias, &DomainInterface::alias);
  if (standby == input.interfaces.end()) {
    objections.push_back({place + entry.name + " is teamed with " + alias +
                              ", but the domain has no interface with that alias",
                          editRemedy(input, alias), ExitCode::badInput});
    return std::nullopt;
  }
  if (const std::string fault = standbyFault(*standby); !fault.empty()) {
    objections.push_back({place + entry.name + " cannot be teamed with " + alias + ": " + fault,
                          editRemedy(input, alias), ExitCode::badInput});
    return std::nullopt;
  }
  if (!entry.macAutomatic && entry.settings.mac && entry.settings.mac != standby->mac) {
    objections.push_back({place + "MAC " + toString(*entry.settings.mac) + " of " + entry.name +
                              " differs from MAC " + toString(*standby->mac) + " of " + alias +
                              ", with which it is teamed: the guest pairs the two by their MAC",
                          "remove `mac:`: the VF then gets the interface's MAC",
                          ExitCode::badInput});
    return std::nullopt;
  }
  return standby->mac;
}

std::string ownerInLeases(const std::vector<Lease>& leases, const Lease& self, const auto& has) {
  for (const auto& lease : leases) {
    const bool same = lease.domain == self.domain && lease.entry == self.entry;
    if (!same && has(settingsOf(lease))) {
      return lease.entry + " of domain " + printable(lease.domainName);
    }
  }
  return {};
}

std::string ownerInMappings(const AttachInput& input, const MappedVf& entry, const auto& has) {
  for (const auto& other : input.mapping.vfs) {
    if (other.name != entry.name && has(other.settings)) {
      return other.name + " of this mapping";
    }
  }
  for (const auto& mapping : input.otherMappings) {
    for (const auto& other : mapping.vfs) {
      if (has(other.settings)) {
        return "the mapping of VM " + printable(mapping.vm) + " at " + toString(other.place);
      }
    }
  }
  return {};
}

// An interface of this domain that is not a device of ours: only a team has one address twice.
bool isOwnInterface(const AttachInput& input, const MacAddress& mac) {
  return std::ranges::any_of(input.interfaces, [&](const DomainInterface& interface) {
    return interface.mac == mac && !isOurAlias(interface.alias);
  });
}

std::string ownerInDomains(const AttachInput& input, const MacAddress& mac) {
  for (const auto& domain : input.domains) {
    const auto& macs = domain.macAddresses;
    if (domain.uuid != input.domain && std::ranges::find(macs, mac) != macs.end()) {
      return "domain " + printable(domain.name);
    }
  }
  return {};
}

// Built once: whoever edits a domain can guess automatic addresses and use thousands of them, each
// of which costs another attempt.
std::set<MacAddress> macsOfOtherDomains(const AttachInput& input) {
  std::set<MacAddress> macs;
  for (const auto& domain : input.domains) {
    if (domain.uuid != input.domain) {
      macs.insert(domain.macAddresses.begin(), domain.macAddresses.end());
    }
  }
  return macs;
}

bool isLeasedTo(const AttachInput& input, const PciAddress& pf, unsigned index) {
  return std::ranges::any_of(input.leases, [&](const Lease& lease) {
    return lease.domain == input.domain && isVfOf(lease, pf, index);
  });
}

// A VF of this host that has the value, whoever set it. The VFs of this domain change hands with
// the lease.
std::string ownerOnHost(const AttachInput& input, const Lease& self, const auto& has) {
  for (const PhysicalFunction& pf : input.inventory.pfs) {
    for (const VirtualFunction& vf : pf.vfs) {
      if (!has(vf.settings)) {
        continue;
      }
      const bool own = (pf.address == self.pf && vf.index == vfOf(self).index) ||
                       isLeasedTo(input, pf.address, vf.index) || isLeftover(vf, self);
      if (!own) {
        return "VF " + std::to_string(vf.index) + " of PF " + toString(pf.address) + " (" +
               toString(vf.address) + ")";
      }
    }
  }
  return {};
}

// The current owner of a value; empty if there is none.
std::string ownerOf(const AttachInput& input, const MappedVf& entry,
                    const std::vector<Lease>& decided, const Lease& self, const auto& has) {
  std::string owner = ownerInLeases(input.leases, self, has);
  if (owner.empty()) {
    owner = ownerInLeases(decided, self, has);
  }
  if (owner.empty()) {
    owner = ownerInMappings(input, entry, has);
  }
  return owner.empty() ? ownerOnHost(input, self, has) : owner;
}

void object(const MappedVf& entry, const std::string& what, const std::string& owner,
            std::vector<Objection>& objections) {
  if (!owner.empty()) {
    objections.push_back(
        {toString(entry.place) + ": " + what + " of " + entry.name + " is already used by " + owner,
         "choose another address, or use `auto`", ExitCode::badInput});
  }
}

void chooseMac(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
               const std::vector<Lease>& decided, Lease& lease,
               std::vector<Objection>& objections) {
  const auto ownerOfMac = [&](const MacAddress& mac) {
    const auto has = [&](const VfSettings& settings) { return settings.mac == mac; };
    return ownerOf(input, entry, decided, lease, has);
  };
  auto& mac = vfOf(lease).settings.mac;
  if (!entry.macAutomatic && mac) {
    std::string owner = ownerOfMac(*mac);
    if (owner.empty()) {
      owner = isOwnInterface(input, *mac)
                  ? "another interface of the domain, which is not a `teaming:`"
                  : ownerInDomains(input, *mac);
    }
    object(entry, "MAC " + toString(*mac), owner, objections);
  } else if (earlier != nullptr && settingsOf(*earlier).mac) {
    mac = settingsOf(*earlier).mac;  // decided at the first attach, kept from then on
  } else {
    const auto macs = macsOfOtherDomains(input);
    mac = derivedMac(input.domain, entry.name, [&](const MacAddress& each) {
      return macs.contains(each) || isOwnInterface(input, each) || !ownerOfMac(each).empty();
    });
  }
}

// Only the two interfaces of a team have the same MAC.
void chooseTeamedMac(const AttachInput& input, const MappedVf& entry,
                     const std::vector<Lease>& decided, Lease& lease,
                     std::vector<Objection>& objections) {
  const auto mac = teamedMac(input, entry, objections);
  if (!mac) {
    return;
  }
  vfOf(lease).settings.mac = mac;
  const auto has = [&mac](const VfSettings& settings) { return settings.mac == mac; };
  const std::string owner = ownerOf(input, entry, decided, lease, has);
  object(entry, "MAC " + toString(*mac), owner.empty() ? ownerInDomains(input, *mac) : owner,
         objections);
}

void chooseGuid(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
                const std::vector<Lease>& decided, Lease& lease, GuidRole role,
                std::vector<Objection>& objections) {
  const auto member = role == GuidRole::node ? &VfSettings::nodeGuid : &VfSettings::portGuid;
  const auto ownerOfGuid = [&](const Guid& guid) {
    const auto has = [&](const VfSettings& settings) { return settings.*member == guid; };
    return ownerOf(input, entry, decided, lease, has);
  };
  auto& guid = vfOf(lease).settings.*member;
  if (guid) {
    object(entry, "GUID " + toString(*guid), ownerOfGuid(*guid), objections);
  } else if (earlier != nullptr && settingsOf(*earlier).*member) {
    guid = settingsOf(*earlier).*member;
  } else {
    guid = derivedGuid(input.domain, entry.name, role,
                       [&](const Guid& each) { return !ownerOfGuid(each).empty(); });
  }
}

}  // namespace

void chooseAddresses(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
                     const std::vector<Lease>& decided, Lease& lease,
                     std::vector<Objection>& objections) {
  if (entry.teamingWith && !vfOf(lease).infiniband) {
    chooseTeamedMac(input, entry, decided, lease, objections);
    return;
  }
  if (!vfOf(lease).infiniband && entry.macKept) {
    return;
  }
  if (!vfOf(lease).infiniband) {
    chooseMac(input, entry, earlier, decided, lease, objections);
    return;
  }
  // A subnet manager does not bring up the port of a VF whose GUID is zero.
  chooseGuid(input, entry, earlier, decided, lease, GuidRole::node, objections);
  chooseGuid(input, entry, earlier, decided, lease, GuidRole::port, objections);
}

}  // namespace vfpass::plan
