#pragma once

#include <chrono>
#include <functional>

namespace vfpass::libvirt {

/// libvirt delivers events only to connections that were opened after an event loop was registered.
void registerEventLoop();

/// Runs libvirt's event loop until `done` returns true; returns false after `timeout`. `done` is
/// checked after every event.
bool runEventsUntil(const std::function<bool()>& done, std::chrono::milliseconds timeout);

}  // namespace vfpass::libvirt
