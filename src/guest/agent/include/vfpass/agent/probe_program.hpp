#pragma once

#include <optional>
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

/// A name for an exchange that nobody in the guest can guess: hexadecimal, 128 random bits.
std::string randomName();

/// One of two probes that talk through the host: it runs in its guest with `--folder`, and the host
/// relays its lines (docs/probe.md, "Two machines"). Only RDMA has to work between the guests.
class ExchangeEnd {
 public:
  /// Creates the directory in the guest and starts the probe there; `arguments` do not include
  /// `--folder`. Throws AgentUnavailable. References must outlive the object.
  ExchangeEnd(Agent& agent, const PlacedProbe& probe, std::string folder,
              std::vector<std::string> arguments);
  /// Stops the probe if it still runs, and removes the directory.
  ~ExchangeEnd();
  ExchangeEnd(const ExchangeEnd&) = delete;
  ExchangeEnd& operator=(const ExchangeEnd&) = delete;

  /// Delivers a line from the other side, if any, and waits briefly for this side's next line.
  /// Nullopt: none yet. Empty: this side has closed. Throws AgentUnavailable, also for a line
  /// longer than a probe may send.
  std::optional<std::string> pass(const std::optional<std::string>& line);

  /// True once the probe has ended.
  bool ended();

  /// The probe's result; only valid once it has ended.
  [[nodiscard]] const ExecResult& result() const { return *result_; }

 private:
  Agent& agent_;
  std::string folder_;
  Agent::Process process_{};
  std::optional<ExecResult> result_;
  int delivered_ = 0;
  int collected_ = 0;
};

/// Relays lines until both probes have ended. Throws AgentUnavailable.
void relayLines(ExchangeEnd& initiator, ExchangeEnd& target);

}  // namespace vfpass::agent
