#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "vfpass/plan/import_mapping.hpp"

namespace vfpass::plan {

// The parts of importMapping(). Which devices it accepts: import_acceptance.cpp.

/// The `<hostdev>`, `<interface>` and the like of the domain that are not known to be VFs of a PF
/// of this host, or not yet: why none of them can get an entry, whatever device it is. nullopt: it
/// can.
std::optional<LeftOut> leftOutByElement(const ImportInput& input, const HandMadeDevice& device);

/// Why a device whose element could get an entry cannot, because of its users or of what it is.
std::optional<LeftOut> leftOutByDevice(const ImportInput& input, const HandMadeDevice& device);

/// Why the values of this VF cannot be those of an entry.
std::optional<LeftOut> leftOutByValues(const ImportInput& input, const HandMadeDevice& device,
                                       const PhysicalFunction& pf, const VirtualFunction& vf);

/// The PF that lists this VF; nullptr if none does.
const PhysicalFunction* pfOfVf(const Inventory& inventory, const PciAddress& vf);

LeftOut leaveOut(const HandMadeDevice& device, LeftOutReason reason, const std::string& message,
                 const std::string& remedy = {});

/// The entry of a VF with everything but its name.
ImportedVf importVf(const ImportInput& input, const HandMadeDevice& device,
                    const PhysicalFunction& pf, const VirtualFunction& vf);

/// The VLAN that the guest's frames get now: of the element if it has one, otherwise of the PF.
std::optional<Vlan> presentVlan(const HandMadeDevice& device, const VirtualFunction& vf);

/// Whether a mapping can have an entry of this name, or a partner of a team.
bool isEntryName(std::string_view text);

/// Names for entries: of the device's alias, otherwise `vf0`, `gpu1` and so on.
class EntryNames {
 public:
  std::string nameOf(const HandMadeDevice& device, const std::string& kind);

 private:
  std::set<std::string> taken_;
};

}  // namespace vfpass::plan
