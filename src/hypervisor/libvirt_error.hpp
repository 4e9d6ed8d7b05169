#pragma once

#include <libvirt/virterror.h>

#include <string>

#include "vfpass/error.hpp"

namespace vfpass::hypervisor {

/// A copy of this thread's last libvirt error; libvirt overwrites its own with the next call.
struct Failure {
  int code = VIR_ERR_OK;
  int systemError = 0;  ///< errno, where libvirt's error is about a system call; otherwise 0
  std::string message;  ///< safe for terminals
};

/// libvirt prints every error to stderr unless told otherwise; ours are printed once, by main.
void silenceLibvirt();

Failure lastFailure();

/// True for "there is no such domain": it never existed, or it went away while we looked.
bool isMissingDomain(const Failure& failure);

/// True where the daemon, or the driver of this URI, has no networks at all: with modular daemons
/// they are another daemon's, which need not run.
bool hasNoNetworkDriver(const Failure& failure);

/// Why a connection could not be opened: daemon not running, no permission, unknown URI, or
/// libvirt's own words.
Error connectError(const std::string& uri, const Failure& failure);

/// Why a call on an open connection failed; `what` says what was tried on which object.
Error callError(const std::string& what, const Failure& failure);

}  // namespace vfpass::hypervisor
