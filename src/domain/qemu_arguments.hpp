#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::domain {

/// A device that `<qemu:commandline>` adds with `-device`. libvirt passes these arguments to QEMU
/// without knowing what they mean.
struct QemuDevice {
  std::string driver;                             ///< `vfio-pci`
  std::map<std::string, std::string> properties;  ///< `host`: `0000:41:00.0`

  /// Empty if it is missing.
  [[nodiscard]] std::string property(const std::string& name) const;
  /// Whether QEMU opens a PCI function of the host for it, or a mediated device.
  [[nodiscard]] bool isVfio() const;
  /// That function; nullopt if it has none, or names it in a way that only QEMU can follow.
  [[nodiscard]] std::optional<PciAddress> hostFunction() const;
};

/// Devices, by alias, whose properties the domain overrides, of those properties that vfpass sets.
struct PropertyOverrides {
  std::set<std::string> cliques;  ///< x-nv-gpudirect-clique
  std::set<std::string> links;    ///< x-speed, x-width

  /// Ignores other properties.
  void add(std::string_view alias, std::string_view property);
};

/// What the arguments in `<qemu:commandline>` say about devices.
struct QemuArguments {
  std::vector<QemuDevice> devices;
  PropertyOverrides overrides;  ///< by `-set device.ALIAS.PROPERTY=VALUE`
  /// Why there may be more devices, or other host functions; empty if there are none.
  std::string doubt;
};

inline constexpr const char* argumentsElement = "qemu:commandline";

/// Never throws: an argument that is not understood becomes a `doubt`.
QemuArguments readQemuArguments(const Document& document);

/// Adds the bus numbers and addresses that these devices take from the guest: controllers for bus
/// numbers, for bridges on the root bus and for chassis numbers, with indexes that libvirt's
/// controllers cannot have (256 and more) and without a model.
void addToMachine(const QemuArguments& arguments, GuestMachine& machine);

/// The place that the device names on the root bus; nullopt if it is elsewhere or names none.
std::optional<PciAddress> rootBusPlace(const QemuDevice& device);

}  // namespace vfpass::domain
