#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vfpass/base/deadline.hpp"
#include "vfpass/remote/observe_protocol.hpp"
#include "vfpass/remote/peer_place.hpp"

namespace vfpass::remote {

/// The host of a peer, as its own vfpass sees it. Everything it says is untrusted: bounded in size,
/// depth and time, and checked for its form.
class RemoteHost {
 public:
  /// Sends one line, and returns the reply. May throw Error.
  using Ask = std::function<std::string(const std::string& line)>;

  /// Asks for the observation of this domain. Throws Error.
  RemoteHost(std::string name, Ask ask, const Uuid& domain);

  [[nodiscard]] const Observation& observation() const { return observation_; }
  [[nodiscard]] verify::HostSide host(const std::string& entry) const;
  [[nodiscard]] std::optional<VfTraffic> traffic(const std::string& entry) const;

 private:
  template <typename Read>
  [[nodiscard]] auto read(const nlohmann::json& question, Read reader) const;

  std::string name_;
  Ask ask_;
  Observation observation_;
};

/// Starts `vfpass observe` there by ssh, which never asks for a password, and keeps it until the
/// object is destroyed. No reply takes longer than deadlines::remoteReply, and none arrives after
/// the deadline. `checkpoint` is called every 100 ms while waiting and may throw Cancelled. Throws
/// Error: ssh cannot log in, no vfpass there, no such VM.
RemoteHost observe(const PeerPlace& place, const Uuid& domain, const Deadline& deadline,
                   const std::function<void()>& checkpoint);

}  // namespace vfpass::remote
