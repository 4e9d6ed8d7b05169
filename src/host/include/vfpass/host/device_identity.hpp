#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Reads up to `length` bytes at `offset`; fewer at the end or after an error.
using ByteReader = std::function<std::string(std::size_t offset, std::size_t length)>;

/// Fields of a PCI function's vital product data. Empty where there is none or the data is
/// malformed.
struct VitalProductData {
  std::string serial;  ///< keyword SN
  /// `SMDL` in NVIDIA's vendor-specific fields, which are lists such as `MLX:MODL=C7:SMDL=SW_MNG`.
  std::string subModel;
  /// Keyword V3, which NVIDIA's field `UUID=V3` names: the same for all functions of a card. By it
  /// rdma_topo pairs a PF with the DMA function of its Direct NIC.
  std::string card;
};

/// True for a ConnectX of a GPU board through which a fabric manager manages the board's NVSwitches
/// (HGX B200 and B300). Its sub-model is SW_MNG, by which NVIDIA's nvidia-fabricmanager-start.sh
/// and Bottlerocket's nvidia-fabricmanager recognize it, too.
bool managesNvlink(const VitalProductData& data, std::uint16_t vendor);

/// Reads as little as possible, because the kernel fetches four bytes at a time through registers.
VitalProductData findVpd(const ByteReader& read);

/// Reads the function's `vpd` file.
/// The kernel reads four bytes at a time, each a request to the card's firmware: on a card this
/// takes up to tenths of a second, and longer if the card hangs. On the running system a guarded
/// process reads, so that the caller waits no longer than deadlines::serial.
VitalProductData readVpd(const Root& root, const PciAddress& function);
/// The serial number only.
std::string readSerial(const Root& root, const PciAddress& function);

/// Whether serial numbers are read (readSerial).
enum class Serials { read, skip };

/// The parts of a `vpd` file that findVpd() needs, read by a guarded process, at their offsets;
/// empty if that takes longer than `deadline`.
std::string readVpdGuarded(int file, std::chrono::milliseconds deadline);

/// Kernel::identityOf(): `15b3:101d function 0 vf 2 serial MT2012X07812`, or `device-serial` and
/// the serial number in configuration space, which is read first because it costs less. On the
/// running system guarded processes read both: access to a device waits for as long as its reset
/// hangs. `timeout`: of the process that reads configuration space.
std::string readIdentity(const Root& root, const PciAddress& function,
                         const std::optional<std::string>& serial,
                         std::chrono::milliseconds timeout);

/// Kernel::findIdentities().
std::map<std::string, std::vector<PciAddress>> functionsWithIdentities(
    const Root& root, const std::set<std::string>& identities);

}  // namespace vfpass::host
