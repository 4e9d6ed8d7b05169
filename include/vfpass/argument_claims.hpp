#pragma once

#include <string_view>

namespace vfpass {

/// `Claim::alias` of a device in `<qemu:commandline>`. No alias of libvirt has a colon.
inline constexpr std::string_view argumentsAlias = "qemu:commandline";

}  // namespace vfpass
