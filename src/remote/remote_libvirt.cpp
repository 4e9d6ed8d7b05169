#include "vfpass/remote/remote_libvirt.hpp"

#include "libvirt_tunnel.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

std::chrono::milliseconds timeLeft(const Deadline& deadline) {
  return std::min(deadlines::remoteReply, deadline.left());
}

Error noReply(const PeerPlace& place, std::chrono::milliseconds timeout) {
  return Error("libvirt of " + printable(place.host) + ": no reply within " +
                   std::to_string(std::chrono::ceil<std::chrono::seconds>(timeout).count()) + " s",
               "check that `virsh --connect " + shellArgument(place.uri) + " list` works");
}

}  // namespace

RemoteLibvirt::RemoteLibvirt(const PeerPlace& place, const Connect& connect,
                             const Deadline& deadline, Checkpoint checkpoint)
    : place_(place),
      checkpoint_(std::move(checkpoint)),
      tunnel_(place.ssh ? std::make_unique<LibvirtTunnel>(place) : nullptr),
      hypervisor_(open(connect, deadline)) {}

// An abandoned call still uses the connection, and ends with this process.
RemoteLibvirt::~RemoteLibvirt() {
  if (callsInProgress != 0) {
    static_cast<void>(hypervisor_.release());
  }
}

std::unique_ptr<Hypervisor> RemoteLibvirt::open(const Connect& connect, const Deadline& deadline) {
  const auto timeout = timeLeft(deadline);
  const auto wait = [this] {
    checkpoint_();
    if (tunnel_) {
      tunnel_->serve();
    }
  };
  std::optional<std::unique_ptr<Hypervisor>> opened;
  try {
    opened = callWithin(timeout, wait, [connect, uri = tunnel_ ? tunnel_->uri() : place_.uri] {
      return connect(uri);
    });
  } catch (const Error& error) {
    const std::string reason = tunnel_ ? tunnel_->lastMessage() : "";
    if (reason.empty()) {
      throw;
    }
    throw Error("cannot connect to libvirt of " + printable(place_.host) + ": ssh: " + reason,
                "make `virsh --connect " + shellArgument(place_.uri) +
                    " list` work without a password, as root");
  }
  if (!opened) {
    throw noReply(place_, timeout);
  }
  return *std::move(opened);
}

std::optional<DomainDescription> RemoteLibvirt::findDomain(const std::string& nameOrUuid,
                                                           const Deadline& deadline) const {
  const auto timeout = timeLeft(deadline);
  const auto found = callWithin(timeout, checkpoint_, [&hypervisor = *hypervisor_, nameOrUuid] {
    return hypervisor.findDomain(nameOrUuid);
  });
  if (!found) {
    throw noReply(place_, timeout);
  }
  return *found;
}

}  // namespace vfpass::remote
