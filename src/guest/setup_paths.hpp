#pragma once

namespace vfpass::guest {

// Where things go in the guest. Every name has `vfpass` in it but NCCL's own file.
inline constexpr const char* netplanFile = "/etc/netplan/90-vfpass.yaml";
inline constexpr const char* connectionFolder = "/etc/NetworkManager/system-connections";
inline constexpr const char* networkdFolder = "/etc/systemd/network";
inline constexpr const char* interfacesFolder = "/etc/network/interfaces.d";
// No dot in it: `source-directory` reads letters, digits, `_` and `-` only.
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

}  // namespace vfpass::guest
