#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "vfpass/inventory.hpp"
#include "vfpass/topology.hpp"

struct pci_access;

namespace vfpass::inventory {

class PciLibrary;

/// Names from udev's hardware database, where there is one, otherwise from pci.ids. libpci reads
/// both; it accesses neither the hardware nor the network.
class ModelNames {
 public:
  /// Throws Error if libpci cannot be loaded. Tests replace its database, which then is the only
  /// one, and its file.
  explicit ModelNames(const std::string& database = {}, const std::string& library = soname);
  ~ModelNames();
  ModelNames(const ModelNames&) = delete;
  ModelNames& operator=(const ModelNames&) = delete;

  /// `Mellanox Technologies MT2892 Family [ConnectX-6 Dx]`; empty if the device is in no database.
  [[nodiscard]] std::string find(std::uint16_t vendor, std::uint16_t device);

 private:
  static constexpr const char* soname = "libpci.so.3";

  std::string findIn(pci_access* access, int flags, std::uint16_t vendor, std::uint16_t device);

  std::unique_ptr<PciLibrary> library_;
  /// pci.ids has 1.3 MB of text, which takes libpci 25 times as long to read as udev's database
  /// (7 ms against 0.3). libpci looks into that one only for what pci.ids lacks: for this access,
  /// it is empty. Null if the caller has chosen the database.
  std::unique_ptr<pci_access, void (*)(pci_access*)> udev_;
  std::unique_ptr<pci_access, void (*)(pci_access*)> access_;
  bool damaged_ = false;
};

/// Sets the model names of PFs and other functions. Throws Error if libpci cannot be loaded.
void nameModels(Inventory& inventory);

/// Sets the model names of GPUs, NICs other than VFs, and NVSwitches. Throws Error if libpci cannot
/// be loaded.
void nameModels(Topology& topology);

}  // namespace vfpass::inventory
