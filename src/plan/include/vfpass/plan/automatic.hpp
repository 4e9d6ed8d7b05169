#pragma once

#include <functional>
#include <string>

#include "vfpass/identifiers.hpp"

namespace vfpass::plan {

/// A locally administered unicast MAC derived only from the domain and the VF's name, so that it is
/// the same on every host and after any loss of state. If `taken` returns true for an address, the
/// next one of the same sequence is tried.
MacAddress automaticMac(const Uuid& domain, const std::string& entry,
                        const std::function<bool(const MacAddress&)>& taken);

enum class GuidRole { node, port };

/// The same for a GUID; the local bit of the EUI-64 is set.
Guid automaticGuid(const Uuid& domain, const std::string& entry, GuidRole role,
                   const std::function<bool(const Guid&)>& taken);

}  // namespace vfpass::plan
