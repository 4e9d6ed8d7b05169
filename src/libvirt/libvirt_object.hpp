#pragma once

#include <libvirt/virterror.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "libvirt_functions.hpp"
#include "vfpass/error.hpp"
#include "vfpass/hypervisor.hpp"

namespace vfpass::libvirt {

struct CloseConnection {
  void operator()(virConnectPtr connection) const { virConnectClose(connection); }
};
struct FreeDomain {
  void operator()(virDomainPtr domain) const { virDomainFree(domain); }
};
struct FreeNetwork {
  void operator()(virNetworkPtr network) const { virNetworkFree(network); }
};
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

using ConnectionHandle = std::unique_ptr<virConnect, CloseConnection>;
using DomainHandle = std::unique_ptr<virDomain, FreeDomain>;
using NetworkHandle = std::unique_ptr<virNetwork, FreeNetwork>;
/// Text or arrays that the caller of libvirt must free.
template <typename Content>
using Memory = std::unique_ptr<Content, FreeMemory>;

/// A domain or network can vanish between two calls; listings then leave it out.
struct Vanished {};

/// The domain's name, from the handle; empty if it has none.
std::string nameOf(virDomainPtr domain);

/// `domain 'train0'`, for messages.
std::string domainNamed(const std::string& name);

/// Both return why libvirt cannot send the XML of this domain or network; that must not end a
/// listing. They throw Vanished, or Error without a connection: then none can be read.
DomainXml readXml(virDomainPtr domain, unsigned flags, const std::string& name);
DomainXml readXml(virNetworkPtr network, const std::string& name);

/// libvirt delivers events only to connections that were opened after an event loop was registered.
/// It also expects the loop to run all the time: libvirtd closes such a connection when the loop
/// has not answered its keepalive messages for 30 s (keepalive_interval in libvirtd.conf), and a
/// step on a device can take minutes. So only a connection that is open while the loop runs may
/// have one.
void registerEventLoop();

/// Implements Hypervisor::detachDevice(): asks the guest to release the device and waits for its
/// answer. The connection must have been opened after registerEventLoop().
void unplug(virConnectPtr connection, virDomainPtr domain, const std::string& alias,
            std::chrono::milliseconds timeout, const std::function<void()>& checkpoint);

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
