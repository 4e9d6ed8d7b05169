#include "addresses.hpp"

#include <algorithm>
#include <set>

#include "teamed_mac.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/automatic.hpp"

namespace vfpass::plan {
namespace {

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

std::string ownerInDomains(const AttachInput& input, const MacAddress& mac) {
  for (const auto& domain : input.domains) {
    const auto& macs = domain.macAddresses;
    if (domain.uuid != input.domain && std::find(macs.begin(), macs.end(), mac) != macs.end()) {
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

// The current owner of a value; empty if there is none.
std::string ownerOf(const AttachInput& input, const MappedVf& entry,
                    const std::vector<Lease>& decided, const Lease& self, const auto& has) {
  std::string owner = ownerInLeases(input.leases, self, has);
  if (owner.empty()) {
    owner = ownerInLeases(decided, self, has);
  }
  return owner.empty() ? ownerInMappings(input, entry, has) : owner;
}

void object(const MappedVf& entry, const std::string& what, const std::string& owner,
            std::vector<Objection>& objections) {
  if (!owner.empty()) {
    objections.push_back(
        {toString(entry.place) + ": " + what + " of " + entry.name + " is already used by " + owner,
         "choose another address, or use `auto`", ExitCode::badInput});
  }
}

void settleMac(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
               const std::vector<Lease>& decided, Lease& lease,
               std::vector<Objection>& objections) {
  const auto ownerOfMac = [&](const MacAddress& mac) {
    const auto has = [&](const VfSettings& settings) { return settings.mac == mac; };
    return ownerOf(input, entry, decided, lease, has);
  };
  auto& mac = vfOf(lease).settings.mac;
  if (!entry.macAutomatic && mac) {
    const std::string owner = ownerOfMac(*mac);
    object(entry, "MAC " + toString(*mac), owner.empty() ? ownerInDomains(input, *mac) : owner,
           objections);
  } else if (earlier != nullptr && settingsOf(*earlier).mac) {
    mac = settingsOf(*earlier).mac;  // decided at the first attach, kept from then on
  } else {
    const auto macs = macsOfOtherDomains(input);
    mac = automaticMac(input.domain, entry.name, [&](const MacAddress& each) {
      return macs.contains(each) || !ownerOfMac(each).empty();
    });
  }
}

// Only the two interfaces of a team have the same MAC.
void settleTeamedMac(const AttachInput& input, const MappedVf& entry,
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

void settleGuid(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
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
    guid = automaticGuid(input.domain, entry.name, role,
                         [&](const Guid& each) { return !ownerOfGuid(each).empty(); });
  }
}

}  // namespace

void settleAddresses(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
                     const std::vector<Lease>& decided, Lease& lease,
                     std::vector<Objection>& objections) {
  if (entry.teamingWith && !vfOf(lease).infiniband) {
    settleTeamedMac(input, entry, decided, lease, objections);
    return;
  }
  if (!vfOf(lease).infiniband && entry.macKept) {
    return;
  }
  if (!vfOf(lease).infiniband) {
    settleMac(input, entry, earlier, decided, lease, objections);
    return;
  }
  // A subnet manager does not bring up the port of a VF whose GUID is zero.
  settleGuid(input, entry, earlier, decided, lease, GuidRole::node, objections);
  settleGuid(input, entry, earlier, decided, lease, GuidRole::port, objections);
}

}  // namespace vfpass::plan
