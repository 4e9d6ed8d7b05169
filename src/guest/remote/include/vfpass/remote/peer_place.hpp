#pragma once

#include <string>
#include <vector>

namespace vfpass::remote {

/// The second VM of `vfpass verify --peer`, and the host that it runs on.
struct PeerPlace {
  std::string vm;    ///< name or UUID
  std::string uri;   ///< of that host's libvirt; empty: the VM runs on this host
  std::string host;  ///< name or address, without brackets
  std::string user;  ///< empty: ssh's default
  std::string port;  ///< of ssh; empty: ssh's default
  bool ssh = false;  ///< libvirt there is reached by ssh, not by a transport of libvirt's own
  std::vector<std::string> sshOptions;  ///< from the URI's parameters
  std::string text;                     ///< for messages: `VM2`, `host2:VM2`

  [[nodiscard]] bool isRemote() const { return !uri.empty(); }
};

/// Reads the words of `--peer`: `VM2`, `host2:VM2`, `root@host2:VM2`, `[2001:db8::1]:VM2`, or a
/// libvirt URI with a host and the VM, such as `qemu+ssh://host2/system VM2`. Of the parameters of
/// such a URI with ssh, `no_tty`, `keyfile` and `no_verify` are possible; ssh's own configuration
/// has the others. A VM of this host whose name contains a colon has to be named by its UUID.
/// Throws Error (badInput). Pure.
PeerPlace parsePeer(const std::vector<std::string>& words);

/// The same for the words of all `--peer` of a command line: a VM each, or a URI and its VM. No VM
/// can be there twice.
std::vector<PeerPlace> parsePeers(const std::vector<std::string>& words);

/// ssh's options for the parameters of a libvirt URI: `path` is its part `/system?keyfile=/k`, and
/// `uri` is for messages. ssh never asks for a password, with or without `no_tty`. Throws Error
/// (badInput) for a parameter that belongs into ssh's configuration.
std::vector<std::string> sshOptionsFrom(const std::string& path, const std::string& uri);

/// The ssh command that runs `command` on the peer's host. It asks nothing, forwards nothing, runs
/// no local command, shares no connection, and ends if the other host does not answer for 15 s,
/// whatever ssh's configuration says. The configuration still decides whom to log in as, how to
/// reach the host, and which host keys are accepted.
std::vector<std::string> sshCommand(const PeerPlace& place, const std::string& command);

}  // namespace vfpass::remote
