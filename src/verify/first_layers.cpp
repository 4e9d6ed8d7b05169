#include "first_layers.hpp"

#include <nlohmann/json.hpp>

#include "judge_host.hpp"
#include "judge_network.hpp"
#include "vfpass/agent/confinement.hpp"

namespace vfpass::verify {

void Layer::enter(const char* key, const char* expectation) {
  key_ = key;
  expectation_ = expectation;
}

void Layer::reportPassed(const std::string& seen) const {
  report_({key_, "", Outcome::passed, expectation_, seen, ""});
}

void Layer::reportError(const Error& error) const {
  report_({key_, "", Outcome::notObservable, expectation_, error.what(), error.remedy()});
}

ReachedGuest reachGuest(agent::Agent& agent, const agent::ProbeFile& probe,
                        const std::string& folder, const agent::Agent::Progress& pushed,
                        Layer& layer) {
  ReachedGuest guest;
  layer.enter("agent", "the guest agent runs programs");
  agent.run("/bin/true", {});
  layer.reportPassed("ran /bin/true");
  layer.enter("probe", "vfpass-probe starts in the guest");
  try {
    guest.probe = placeProbe(agent, probe, folder, pushed);
  } catch (const agent::AgentUnavailable& error) {
    if (const auto context = agent::findConfinement(agent)) {
      throw agent::AgentUnavailable(
          error.what() + ("; SELinux confines the agent's programs (" + *context + ")"),
          agent::confinementRemedy());
    }
    throw;
  }
  layer.reportPassed(guest.probe.path + (guest.probe.pushed ? ", just copied" : ", already there"));
  layer.enter("inventory", "the probe lists the guest's devices");
  guest.view = readGuestView(runProbe(agent, guest.probe, {"inventory"}));
  layer.reportPassed("list received");
  return guest;
}

DeviceVerdict judgeEntry(const Lease& lease, const GuestView& view, const HostSide* host) {
  DeviceVerdict verdict;
  if (host != nullptr) {
    verdict.findings.push_back(judgeHold(lease, host->hold));
    if (verdict.findings.back().outcome == Outcome::failed) {
      return verdict;
    }
  }
  DeviceVerdict device = judgeDevice(lease, view, host == nullptr ? HostSide{} : *host);
  verdict.port = device.port;
  const auto append = [&](const std::vector<Finding>& findings) {
    verdict.findings.insert(verdict.findings.end(), findings.begin(), findings.end());
  };
  append(device.findings);
  if (verdict.port) {
    append(judgeNetworkSettings(lease.entry, *verdict.port, view,
                                host == nullptr ? std::nullopt : host->guestMtu));
  }
  return verdict;
}

}  // namespace vfpass::verify
