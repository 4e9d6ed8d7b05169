#pragma once

#include <functional>
#include <memory>
#include <string>

#include "vfpass/base/deadline.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/remote/peer_place.hpp"

namespace vfpass::remote {

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
