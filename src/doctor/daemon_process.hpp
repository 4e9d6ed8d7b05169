#pragma once

#include <array>
#include <optional>
#include <string>

#include "vfpass/host/root.hpp"

namespace vfpass::doctor {

/// libvirt's daemons that run QEMU, the modular one first.
inline constexpr std::array daemons{"virtqemud", "libvirtd"};

/// PID of this daemon; nullopt if it is not running.
std::optional<std::string> processOf(const host::Root& root, const std::string& daemon);

}  // namespace vfpass::doctor
