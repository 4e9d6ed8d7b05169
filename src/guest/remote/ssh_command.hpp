#pragma once

#include <string>
#include <vector>

#include "vfpass/remote/peer_place.hpp"

namespace vfpass::remote {

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
