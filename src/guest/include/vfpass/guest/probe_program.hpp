#pragma once

#include <string>
#include <vector>

#include "vfpass/guest/agent.hpp"

namespace vfpass::guest {

/// Where the probe goes when nobody says otherwise. Not below /tmp or /run, which are mounted
/// noexec here and there.
inline constexpr const char* probeFolder = "/var/lib/vfpass-probe";

/// vfpass-probe as the host has it.
struct ProbeFile {
  std::string content;
  std::string name;  ///< `vfpass-probe-` and a hash of the content: another build is another file
};

/// Reads it. Throws Error when there is none, with where it was looked for.
ProbeFile readProbeFile(const std::string& path);

/// The probe in the guest, ready to run.
struct PlacedProbe {
  std::string path;
  bool pushed = false;  ///< false: the same build, or the administrator's, was there
};

/// Finds this build in the guest's `folder`, or writes it there, or else takes one that the guest's
/// administrator has installed. Throws AgentUnavailable when none of it works, and says why.
PlacedProbe placeProbe(Agent& agent, const ProbeFile& file, const std::string& folder,
                       const Agent::Progress& progress);

/// What a probe that has ended said. Throws AgentUnavailable when it is no document.
nlohmann::json probeDocument(const PlacedProbe& probe, const ExecResult& result);

/// Runs it and returns its document. Throws AgentUnavailable when what it says is no document.
nlohmann::json runProbe(Agent& agent, const PlacedProbe& probe,
                        const std::vector<std::string>& arguments);

}  // namespace vfpass::guest
