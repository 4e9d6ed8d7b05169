#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/plan/check_device.hpp"

namespace vfpass::plan {

/// Problems with the isolation of a VF or function, by its name in messages: it has no IOMMU group,
/// shares it with a device that does not go to the same guest, or interrupts can be injected.
/// Bridges of the host in the group are harmless. Allowances waive sharing and interrupts.
std::vector<Objection> checkIsolation(const std::string& name, const Device& device,
                                      const DeviceTerms& terms);

/// The beginning of a remedy: to pass these functions to the same guest as an entry of
/// `functions:`, with lines to paste into the mapping. Ends with "or ", so that an alternative can
/// follow. Empty if the terms name no entry, or if one of the functions is a bridge, which cannot
/// be passed to a guest. The proposed names tell the kind of the function (`gpu0-audio`) and differ
/// from all entries of the mapping.
std::string companionRemedy(const std::vector<GroupPeer>& functions, const DeviceTerms& terms);

/// The addresses in one line.
std::string listAddresses(const std::vector<GroupPeer>& functions);

}  // namespace vfpass::plan
