#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/guest/agent.hpp"
#include "vfpass/guest/probe_program.hpp"

namespace vfpass::guest {

/// One of two probes that talk through the host: it runs in its guest with `--folder`, and the host
/// carries its lines (docs/probe.md, "Two machines"). Nothing but RDMA has to work between guests.
class ExchangeEnd {
 public:
  /// Makes the folder in the guest and starts the probe there; `arguments` without `--folder`.
  /// Throws AgentUnavailable. References must outlive it.
  ExchangeEnd(Agent& agent, const PlacedProbe& probe, std::string folder,
              std::vector<std::string> arguments);
  /// Ends the probe when it still runs, and removes the folder.
  ~ExchangeEnd();
  ExchangeEnd(const ExchangeEnd&) = delete;
  ExchangeEnd& operator=(const ExchangeEnd&) = delete;

  /// Hands over a line of the other side's, if there is one, and waits a moment for the next of
  /// this side's. Nullopt: there is none yet. Empty: this side has closed. Throws AgentUnavailable,
  /// also for a line that no probe sends.
  std::optional<std::string> pass(const std::optional<std::string>& line);

  /// True once the probe has ended.
  bool ended();

  /// What it left behind; only once it has ended.
  [[nodiscard]] const ExecResult& result() const { return *result_; }

 private:
  Agent& agent_;
  std::string folder_;
  Agent::Process process_{};
  std::optional<ExecResult> result_;
  int delivered_ = 0;
  int collected_ = 0;
};

/// Carries lines until both have ended. Throws AgentUnavailable when a guest does not let us.
void carryLines(ExchangeEnd& initiator, ExchangeEnd& target);

}  // namespace vfpass::guest
