#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vfpass/base/deadline.hpp"
#include "vfpass/hypervisor.hpp"
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
  /// Of RDMA alone; nullopt: the host cannot tell it apart.
  [[nodiscard]] std::optional<VfTraffic> rdma(const std::string& entry) const;

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

class LibvirtTunnel;

/// The libvirt of a peer's host. libvirt's calls have no timeout and do not return at a signal, so
/// each one here has a deadline and a checkpoint. For ssh, libvirt gets a socket of our own and not
/// its URI: ssh then has our options, and ends with this object.
class RemoteLibvirt {
 public:
  /// Connects to a URI, libvirt::connect().
  using Connect = std::function<std::unique_ptr<Hypervisor>(const std::string& uri)>;
  /// Called every 100 ms while waiting; may throw Cancelled.
  using Checkpoint = std::function<void()>;

  /// Throws Error: no connection, or none before the deadline.
  RemoteLibvirt(const PeerPlace& place, const Connect& connect, const Deadline& deadline,
                Checkpoint checkpoint);
  RemoteLibvirt(const RemoteLibvirt&) = delete;
  RemoteLibvirt& operator=(const RemoteLibvirt&) = delete;
  ~RemoteLibvirt();

  /// For agent::Agent, which waits in the same way.
  [[nodiscard]] Hypervisor& hypervisor() const { return *hypervisor_; }

  [[nodiscard]] std::optional<DomainDescription> findDomain(const std::string& nameOrUuid,
                                                            const Deadline& deadline) const;

 private:
  [[nodiscard]] std::unique_ptr<Hypervisor> open(const Connect& connect, const Deadline& deadline);

  const PeerPlace& place_;
  Checkpoint checkpoint_;
  std::unique_ptr<LibvirtTunnel> tunnel_;  // null for libvirt's own transports
  std::unique_ptr<Hypervisor> hypervisor_;
};

}  // namespace vfpass::remote
