#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Identifies a netdev by interface index, because names change; the name is for messages.
struct NetdevHandle {
  int index = 0;
  std::string name;
};

/// These use netlink on the running kernel without requesting the VF list. They throw Error when
/// the kernel refuses (with the driver's message), when it does not reply before the deadline, and,
/// for setters, when the value does not read back.
LinkSettings readLink(const NetdevHandle& netdev, std::chrono::milliseconds deadline);
void setMtu(const NetdevHandle& netdev, unsigned mtu, std::chrono::milliseconds deadline);
void setUp(const NetdevHandle& netdev, bool up, std::chrono::milliseconds deadline);

/// Whether its driver has detached the netdev (isDetached()). Throws TimeoutError.
bool isNetdevDetached(const NetdevHandle& netdev, std::chrono::milliseconds deadline);

/// Nullopt when the mode is not observable: the kernel has no devlink, devlink does not have the
/// device, the driver has no embedded switch, or permission is denied.
std::optional<EswitchMode> readEswitchMode(const PciAddress& pf,
                                           std::chrono::milliseconds deadline);
/// The errno with which the driver refuses root to read the eswitch mode; 0: it does not, or the
/// caller is not root, to whom devlink itself returns EPERM. mlx5 refuses it for a PF that does not
/// manage the switch (mlx5_eswitch_check), as on a BlueField in DPU mode: with EPERM in older
/// kernels, later with EOPNOTSUPP, which InfiniBand ports and PFs without VFs also gave.
int eswitchRefusal(const PciAddress& pf, std::chrono::milliseconds deadline);
/// The PF's link goes down meanwhile, and its RDMA device is created anew: read the PF again.
void setEswitchMode(const PciAddress& pf, EswitchMode mode, std::chrono::milliseconds deadline);
/// Kernel::migratableVfs() of the running kernel. Throws Error, TimeoutError.
MigratableVfs readMigratable(const PciAddress& pf, std::chrono::milliseconds deadline);

/// The RTM_SETLINK message for setUp(), which changes nothing else.
std::string upChange(int interfaceIndex, bool up);
/// Nullopt when this is not an RTM_NEWLINK message about that interface, or has no MTU.
std::optional<LinkSettings> parseLinkSettings(std::string_view bytes, int interfaceIndex);

/// The ID of the generic netlink family devlink; nullopt in another message.
std::optional<std::uint16_t> parseFamily(std::string_view bytes);
/// Nullopt when it is another message, names another device, or has no known mode.
std::optional<EswitchMode> parseEswitchReply(std::string_view bytes, std::uint16_t family,
                                             const PciAddress& pf);

}  // namespace vfpass::host
