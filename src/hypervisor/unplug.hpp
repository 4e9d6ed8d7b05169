#pragma once

#include <libvirt/libvirt.h>

#include <chrono>
#include <string>

namespace vfpass::hypervisor {

/// Hypervisor::detachDevice(): asks the guest to let go of the device and waits for its answer.
void unplug(virConnectPtr connection, virDomainPtr domain, const std::string& alias,
            std::chrono::milliseconds patience);

}  // namespace vfpass::hypervisor
