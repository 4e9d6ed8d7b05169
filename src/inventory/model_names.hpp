#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct pci_access;

namespace vfpass::inventory {

/// libpci's database of names (pci.ids). Touches no hardware and never asks the network.
class ModelNames {
 public:
  /// With a database of one's own for tests; by default libpci's.
  explicit ModelNames(const std::string& database = {});
  ~ModelNames();
  ModelNames(const ModelNames&) = delete;
  ModelNames& operator=(const ModelNames&) = delete;

  /// `Mellanox Technologies MT2892 Family [ConnectX-6 Dx]`; empty where the database has no such
  /// device, or where there is no database.
  [[nodiscard]] std::string find(std::uint16_t vendor, std::uint16_t device);

 private:
  std::unique_ptr<pci_access, void (*)(pci_access*)> access_;
  bool damaged_ = false;
};

}  // namespace vfpass::inventory
