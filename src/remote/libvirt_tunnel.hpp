#pragma once

#include <optional>
#include <string>

#include "child_process.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/remote/peer_place.hpp"

namespace vfpass::remote {

/// A local socket that leads to the libvirt of another host: what connects to it becomes the
/// standard input and output of ssh. It accepts one connection.
class LibvirtTunnel {
 public:
  /// Throws Error.
  explicit LibvirtTunnel(const PeerPlace& place);

  /// For libvirt in this process; no other process can use it.
  [[nodiscard]] std::string uri() const;
  /// Starts ssh if libvirt has connected. Does not wait. Throws Error.
  void serve();
  /// ssh's last message, escaped; empty if there is none.
  [[nodiscard]] std::string lastMessage();

 private:
  const PeerPlace& place_;
  FileDescriptor listening_;
  FileDescriptor name_;  // the socket's inode, by which libvirt finds it
  std::optional<ChildProcess> ssh_;
};

}  // namespace vfpass::remote
