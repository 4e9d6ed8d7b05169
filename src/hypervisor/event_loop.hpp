#pragma once

#include <chrono>
#include <functional>

namespace vfpass::hypervisor {

/// libvirt delivers events only to connections that were opened after an event loop was registered.
void registerEventLoop();

/// Runs libvirt's event loop until `done` says so; false when `patience` was over before. `done` is
/// asked after every event.
bool runEventsUntil(const std::function<bool()>& done, std::chrono::milliseconds patience);

}  // namespace vfpass::hypervisor
