#include "pci_library.hpp"

namespace vfpass::inventory {

PciLibrary::PciLibrary(const std::string& name)
    : library_({name}, "install libpci (Debian: libpci3, Fedora: pciutils-libs)") {
  library_.require(allocate, "pci_alloc");
  library_.require(cleanUp, "pci_cleanup");
  library_.require(lookUpName, "pci_lookup_name");
  library_.require(setNameListPath, "pci_set_name_list_path");
}

}  // namespace vfpass::inventory
