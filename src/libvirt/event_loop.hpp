#pragma once

#include <chrono>
#include <functional>

namespace vfpass::libvirt {

/// libvirt delivers events only to connections that were opened after an event loop was registered.
/// It also expects the loop to run all the time: libvirtd closes such a connection when the loop
/// has not answered its keepalive messages for 30 s (keepalive_interval in libvirtd.conf), and a
/// step on a device can take minutes. So only a connection that is open while the loop runs may
/// have one.
void registerEventLoop();

/// Runs libvirt's event loop until `done` returns true; returns false after `timeout`. `done` is
/// checked after every event and at least four times a second; an exception of it ends the loop.
bool runEventsUntil(const std::function<bool()>& done, std::chrono::milliseconds timeout);

}  // namespace vfpass::libvirt
