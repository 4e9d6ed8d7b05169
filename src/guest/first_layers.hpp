#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/guest/agent.hpp"
#include "vfpass/guest/host_side.hpp"
#include "vfpass/guest/probe_program.hpp"

namespace vfpass::guest {

/// The layer that a verification is in: what throws there has broken that link.
class Layer {
 public:
  explicit Layer(std::function<void(const Finding&)> report) : report_(std::move(report)) {}

  void enter(const char* key, const char* expectation);
  void passed(const std::string& seen) const;
  void broken(const Error& error) const;

 private:
  std::function<void(const Finding&)> report_;
  const char* key_ = "";
  const char* expectation_ = "";
};

/// What every verification needs of a guest.
struct ReachedGuest {
  PlacedProbe probe;
  GuestView view;
};

/// Agent, probe, inventory: the layers before any device. Throws where one is broken; `layer` knows
/// which one.
ReachedGuest reachGuest(Agent& agent, const ProbeFile& probe, const std::string& folder,
                        const Agent::Progress& pushed, Layer& layer);

/// All that is judged of an entry before data is moved; what the host sees comes first, where it
/// does (`host` may be null). Pure.
DeviceVerdict judgeEntry(const Lease& lease, const GuestView& view, const HostSide* host);

}  // namespace vfpass::guest
