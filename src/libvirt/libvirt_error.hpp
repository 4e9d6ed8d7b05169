#pragma once

#include <libvirt/virterror.h>

#include <string>

#include "vfpass/error.hpp"

namespace vfpass::libvirt {

/// A copy of this thread's last libvirt error, which the next libvirt call overwrites.
struct Failure {
  int code = VIR_ERR_OK;
  int systemError = 0;  ///< errno of a failed system call; otherwise 0
  std::string message;  ///< safe for terminals
};

/// libvirt prints every error to stderr by default; main prints ours once.
void silenceLibvirt();

Failure lastFailure();

/// True if there is no such domain: it never existed or vanished meanwhile.
bool isMissingDomain(const Failure& failure);

/// True if the daemon or the driver of this URI does not support networks: with modular daemons,
/// another daemon manages them, and it may not be running.
bool hasNoNetworkDriver(const Failure& failure);

/// The error for a connection that could not be opened: daemon not running, no permission, unknown
/// URI, or libvirt's own message.
Error connectError(const std::string& uri, const Failure& failure);

/// The error for a failed call on an open connection; `what` names the failed action and its
/// object.
Error callError(const std::string& what, const Failure& failure);

}  // namespace vfpass::libvirt
