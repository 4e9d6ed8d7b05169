#pragma once

#include <libvirt/libvirt.h>

#include <chrono>
#include <functional>
#include <string>

namespace vfpass::libvirt {

/// libvirt delivers events only to connections that were opened after an event loop was registered.
/// It also expects the loop to run all the time: libvirtd closes such a connection when the loop
/// has not answered its keepalive messages for 30 s (keepalive_interval in libvirtd.conf), and a
/// step on a device can take minutes. So only a connection that is open while the loop runs may
/// have one.
void registerEventLoop();

/// Implements Hypervisor::detachDevice(): asks the guest to release the device and waits for its
/// answer. The connection must have been opened after registerEventLoop().
void unplug(virConnectPtr connection, virDomainPtr domain, const std::string& alias,
            std::chrono::milliseconds timeout, const std::function<void()>& checkStop);

}  // namespace vfpass::libvirt
