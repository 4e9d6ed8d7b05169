#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/mapping.hpp"
#include "vfpass/setup/setup_plan.hpp"
#include "vfpass/setup/setup_view.hpp"

namespace vfpass::setup {

/// The software that sets addresses in the guest.
enum class NetworkTool { netplan, networkManager, networkd, ifupdown, plain };

/// Depends on what runs in the guest. netplan only generates configuration for NetworkManager or
/// systemd-networkd, so it counts only if one of them runs.
NetworkTool networkToolOf(const SetupView& view);

/// `netplan`, `NetworkManager`, `systemd-networkd`, `ifupdown` or `ip`.
std::string toString(NetworkTool tool);

/// A port and its interface in the guest.
struct PlacedPort {
  WantedPort wanted;
  SetupNetdev netdev;
  std::string name;  ///< the interface's name from the guest's next start, for files
};

/// A file that guest-setup wants to write.
struct WantedFile {
  std::string path;
  std::string content;
  unsigned mode = 0644;
  std::string reason;
};

/// First line of the files that guest-setup writes.
inline constexpr const char* writtenBy =
    "# Written by `vfpass guest-setup` on the host; --undo removes it.\n";

/// Files that make the addresses and MTUs of these ports persistent; none for `plain` without
/// systemd.
std::vector<WantedFile> networkFiles(NetworkTool tool, const std::vector<PlacedPort>& ports,
                                     const SetupView& view, const Uuid& domain);

/// The file that makes udev name this port's interface `port.name` whenever it appears.
WantedFile linkFile(const PlacedPort& port);

/// `KEY=VALUE` lines for /etc/nccl.conf; an empty `topologyFile` is left out.
std::vector<std::string> ncclLines(const NcclSettings& settings, const std::string& topologyFile);

/// `content` with our block of these lines at its top, all other bytes unchanged. NCCL applies each
/// line with setenv(..., 0), so the first line of a key takes effect. No lines: without our block.
std::string withNcclBlock(const std::string& content, const std::vector<std::string>& lines);

/// Lines outside our block that a block of `lines` overrides, verbatim.
std::vector<std::string> overriddenLines(const std::string& content,
                                         const std::vector<std::string>& lines);

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
