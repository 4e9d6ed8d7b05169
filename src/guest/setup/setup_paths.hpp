#pragma once

#include <array>

namespace vfpass::setup {

// Files that vfpass writes in the guest. All except NCCL's own have `vfpass` in their path.
inline constexpr const char* netplanFile = "/etc/netplan/90-vfpass.yaml";
inline constexpr const char* connectionFolder = "/etc/NetworkManager/system-connections";
inline constexpr const char* networkdFolder = "/etc/systemd/network";  // also udev's .link files
inline constexpr const char* interfacesFolder = "/etc/network/interfaces.d";
// No dot in the name: `source-directory` reads only names of letters, digits, `_` and `-`.
inline constexpr const char* interfacesFile = "/etc/network/interfaces.d/vfpass";
inline constexpr const char* plainScript = "/etc/vfpass/guest-network.sh";
inline constexpr const char* plainSettings = "/etc/vfpass/guest-network.conf";
inline constexpr const char* plainUnitName = "vfpass-guest-network.service";
inline constexpr const char* plainUnit = "/etc/systemd/system/vfpass-guest-network.service";
inline constexpr const char* sysctlFile = "/etc/sysctl.d/90-vfpass.conf";
inline constexpr const char* modulesFile = "/etc/modules-load.d/vfpass.conf";
inline constexpr const char* nvlinkFile = "/etc/modprobe.d/vfpass-nvlink.conf";
inline constexpr const char* ncclFile = "/etc/nccl.conf";
inline constexpr const char* ncclTopologyFile = "/etc/vfpass/nccl-topology.xml";

/// Those whose names do not depend on the mapping's entries.
inline constexpr std::array setupFiles{netplanFile,      interfacesFile, plainScript, plainSettings,
                                       plainUnit,        sysctlFile,     modulesFile, ncclFile,
                                       ncclTopologyFile, nvlinkFile};

}  // namespace vfpass::setup
