#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// A locally administered unicast MAC derived only from the domain and the VF's name, so that it is
/// the same on every host and after any loss of state. If `taken` returns true for an address, the
/// next one of the same sequence is tried.
MacAddress derivedMac(const Uuid& domain, const std::string& entry,
                      const std::function<bool(const MacAddress&)>& taken);

enum class GuidRole { node, port };

/// The same for a GUID; the local bit of the EUI-64 is set.
Guid derivedGuid(const Uuid& domain, const std::string& entry, GuidRole role,
                 const std::function<bool(const Guid&)>& taken);

/// Chooses the MAC and GUIDs that the mapping leaves to vfpass, and adds a problem for each address
/// that is already used elsewhere. `decided`: leases already decided for the same mapping.
void chooseAddresses(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
                     const std::vector<Lease>& decided, Lease& lease,
                     std::vector<Objection>& objections);

}  // namespace vfpass::plan
