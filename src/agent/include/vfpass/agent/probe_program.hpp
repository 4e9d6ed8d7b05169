#pragma once

#include <string>
#include <vector>

#include "vfpass/agent/agent.hpp"

namespace vfpass::agent {

/// Default directory of the probe in the guest. Not below /tmp or /run, which some systems mount
/// noexec.
inline constexpr const char* probeFolder = "/var/lib/vfpass-probe";

/// The host's copy of vfpass-probe.
struct ProbeFile {
  std::string content;
  std::string name;  ///< `vfpass-probe-` and a hash of the content, so that builds do not collide
};

/// Throws Error when the file cannot be read.
ProbeFile readProbeFile(const std::string& path);

/// The probe in the guest, ready to run.
struct PlacedProbe {
  std::string path;
  bool pushed = false;  ///< false: the guest already had this build or an installed probe
};

/// Uses the probe of this build in the guest's `folder`, or copies it there, or falls back to a
/// probe that the guest's administrator installed. Throws AgentUnavailable when none of them works.
PlacedProbe placeProbe(Agent& agent, const ProbeFile& file, const std::string& folder,
                       const Agent::Progress& progress);

/// The report of a probe that has exited. Throws AgentUnavailable when it wrote none.
nlohmann::json probeDocument(const PlacedProbe& probe, const ExecResult& result);

/// Runs the probe and returns its report. Throws AgentUnavailable when it wrote none.
nlohmann::json runProbe(Agent& agent, const PlacedProbe& probe,
                        const std::vector<std::string>& arguments);

}  // namespace vfpass::agent
