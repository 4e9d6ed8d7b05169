#pragma once

#include <libvirt/libvirt.h>

#include <chrono>
#include <functional>
#include <string>

namespace vfpass::libvirt {

/// Implements Hypervisor::detachDevice(): asks the guest to release the device and waits for its
/// answer. The connection must have been opened after registerEventLoop().
void unplug(virConnectPtr connection, virDomainPtr domain, const std::string& alias,
            std::chrono::milliseconds timeout, const std::function<void()>& checkStop);

}  // namespace vfpass::libvirt
