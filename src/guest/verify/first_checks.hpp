#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// The check that a verification is running. An exception is reported as that check's finding.
class Layer {
 public:
  explicit Layer(std::function<void(const Finding&)> report) : report_(std::move(report)) {}

  void enter(const std::string& key, const char* expectation);
  void reportPassed(const std::string& seen) const;
  void reportError(const Error& error) const;

 private:
  std::function<void(const Finding&)> report_;
  std::string key_;
  const char* expectation_ = "";
};

/// A guest with a running probe, and its inventory.
struct ReachedGuest {
  agent::PlacedProbe probe;  ///< without a path: it has not started
  GuestView view;
};

/// Checks agent, probe and inventory, which come before any device. Throws when one fails; `layer`
/// then holds the failed check, and `guest.probe` the probe if it has started.
void reachGuest(agent::Agent& agent, const agent::ProbeFile& probe, const std::string& folder,
                const agent::Agent::Progress& pushed, Layer& layer, ReachedGuest& guest);

/// All checks of an entry before data is moved. The host's own view comes first, unless `host` is
/// null. `vfs`, `gpus`: those that are leased to the guest; two VFs with one RDMA device in the
/// guest fail at `rdma-device`. Pure.
DeviceVerdict judgeEntry(const Lease& lease, const GuestView& view, const HostSide* host,
                         const std::vector<Lease>& vfs, const std::vector<LeasedGpu>& gpus);

/// A failed finding that relies on what the probe could open or list is not observable if SELinux
/// confined the probe (`context`, empty: it did not): the device may be sound. Findings of the host
/// and about transferred bytes stay as they are.
Finding withConfinement(Finding finding, const std::string& context);

}  // namespace vfpass::verify
