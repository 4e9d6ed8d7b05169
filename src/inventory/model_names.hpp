#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct pci_access;

namespace vfpass::inventory {

class PciLibrary;

/// libpci's database of names (pci.ids). Accesses neither the hardware nor the network.
class ModelNames {
 public:
  /// Throws Error if libpci cannot be loaded. Tests replace its database and its file.
  explicit ModelNames(const std::string& database = {}, const std::string& library = soname);
  ~ModelNames();
  ModelNames(const ModelNames&) = delete;
  ModelNames& operator=(const ModelNames&) = delete;

  /// `Mellanox Technologies MT2892 Family [ConnectX-6 Dx]`; empty if the device is not in the
  /// database or there is no database.
  [[nodiscard]] std::string find(std::uint16_t vendor, std::uint16_t device);

 private:
  static constexpr const char* soname = "libpci.so.3";

  std::unique_ptr<PciLibrary> library_;
  std::unique_ptr<pci_access, void (*)(pci_access*)> access_;
  bool damaged_ = false;
};

}  // namespace vfpass::inventory
