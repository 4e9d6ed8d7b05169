#pragma once

extern "C" {
#include <pci/pci.h>
}

#include <string>

#include "vfpass/base/shared_library.hpp"

namespace vfpass::inventory {

/// libpci, loaded when a command prints names. It brings zlib and libudev with it.
class PciLibrary {
 public:
  /// Throws Error with the loader's message if `name` cannot be loaded.
  explicit PciLibrary(const std::string& name);

  decltype(&::pci_alloc) allocate = nullptr;
  decltype(&::pci_cleanup) cleanUp = nullptr;
  decltype(&::pci_lookup_name) lookUpName = nullptr;
  decltype(&::pci_set_name_list_path) setNameListPath = nullptr;

 private:
  SharedLibrary library_;
};

}  // namespace vfpass::inventory
