#pragma once

#include <chrono>
#include <filesystem>

#include "request.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/state/seal_key.hpp"

namespace vfpass::hook {

/// Where state and locks are. Fixed: the hook takes nothing from its environment.
struct Places {
  std::filesystem::path stateDirectory = "/var/lib/vfpass";
  std::filesystem::path runDirectory = "/run/vfpass";
  /// When the call is over, waiting and working together: libvirt has no time-out for hooks, and
  /// holds the domain's lock for as long as one runs.
  std::chrono::steady_clock::time_point deadline;
  state::SealKeyPlaces sealKey = {};
};

/// Before libvirt looks at the devices: the VFs exist, are this domain's, configured, and bound.
/// Throws when the domain must not start.
void prepare(const domain::ParsedDomain& parsed, const Places& places);

/// The guest runs: its leases do, too.
void markRunning(const domain::ParsedDomain& parsed, const Places& places);

/// The guest is gone, or was refused: scrub what this domain was starting or running, nothing else.
/// A refused start comes here, too, with an XML that names the rightful owner's device: so the
/// leases decide, never the XML.
void release(const domain::ParsedDomain& parsed, const Places& places);

/// The daemon was restarted under a running guest: put its leases back if they are lost.
void reconnect(const domain::ParsedDomain& parsed, const Places& places);

}  // namespace vfpass::hook
