#include "vfpass/inventory/model_names.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <array>
#include <csetjmp>
#include <cstring>
#include <map>

#include "vfpass/base/shared_library.hpp"

namespace vfpass::inventory {

/// libpci, loaded when a command prints names. It brings zlib and libudev with it.
class PciLibrary {
 public:
  /// Throws Error with the loader's message if `name` cannot be loaded.
  explicit PciLibrary(const std::string& name)
      : library_({name}, "install libpci (Debian: libpci3, Fedora: pciutils-libs)") {
    library_.require(allocate, "pci_alloc");
    library_.require(cleanUp, "pci_cleanup");
    library_.require(lookUpName, "pci_lookup_name");
    library_.require(setNameListPath, "pci_set_name_list_path");
  }

  decltype(&::pci_alloc) allocate = nullptr;
  decltype(&::pci_cleanup) cleanUp = nullptr;
  decltype(&::pci_lookup_name) lookUpName = nullptr;
  decltype(&::pci_set_name_list_path) setNameListPath = nullptr;

 private:
  SharedLibrary library_;
};

namespace {

// libpci's error callback must not return, and the default one exits, which a damaged pci.ids does
// not justify. The jump leaves libpci in an undefined state, so it is not used afterwards.
thread_local std::jmp_buf escape;

__attribute__((noreturn)) void onError(char* /*format*/, ...) { std::longjmp(escape, 1); }
void ignore(char* /*format*/, ...) {}

pci_access* allocate(const PciLibrary& library) {
  pci_access* access = library.allocate();
  access->error = onError;
  access->warning = ignore;
  access->debug = ignore;
  return access;
}

// Null if the database lacks the name; sets `damaged` if libpci failed. Has no objects with
// destructors, because longjmp does not run them.
const char* look(const PciLibrary& library, pci_access* access, char* buffer, int size, int flags,
                 int vendor, int device, bool& damaged) {
  if (setjmp(escape) != 0) {
    damaged = true;
    return nullptr;
  }
  return library.lookUpName(access, buffer, size, flags, vendor, device);
}

}  // namespace

ModelNames::ModelNames(const std::string& database, const std::string& library)
    : library_(std::make_unique<PciLibrary>(library)),
      udev_(database.empty() ? allocate(*library_) : nullptr, library_->cleanUp),
      access_(allocate(*library_), library_->cleanUp) {
  // libpci frees the paths (1).
  if (udev_ != nullptr) {
    library_->setNameListPath(udev_.get(), ::strdup("/dev/null"), 1);
  } else {
    library_->setNameListPath(access_.get(), ::strdup(database.c_str()), 1);
  }
}

ModelNames::~ModelNames() = default;

std::string ModelNames::find(std::uint16_t vendor, std::uint16_t device) {
  std::string name;
  if (udev_ != nullptr) {
    name = findIn(udev_.get(), 0, vendor, device);
  }
  return name.empty() ? findIn(access_.get(), PCI_LOOKUP_NO_HWDB, vendor, device) : name;
}

std::string ModelNames::findIn(pci_access* access, int flags, std::uint16_t vendor,
                               std::uint16_t device) {
  std::array<char, 256> buffer{};
  const char* name = nullptr;
  if (!damaged_) {
    flags |= PCI_LOOKUP_NO_NUMBERS | PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE;
    name = look(*library_, access, buffer.data(), static_cast<int>(buffer.size()), flags, vendor,
                device, damaged_);
  }
  return name == nullptr ? std::string{} : std::string(name);
}

void nameModels(Inventory& inventory) {
  ModelNames names;
  for (PhysicalFunction& pf : inventory.pfs) {
    pf.model = names.find(pf.vendor, pf.device);
  }
  for (Device& function : inventory.functions) {
    function.model = names.find(function.vendor, function.device);
  }
}

void nameModels(Topology& topology) {
  ModelNames names;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::string> known;
  for (Device& function : topology.functions) {
    const bool wanted = function.role == FunctionRole::gpu || function.role == FunctionRole::nic ||
                        function.role == FunctionRole::nvswitch ||
                        function.role == FunctionRole::nvlinkManagement;
    if (!wanted || function.physicalFunction) {
      continue;
    }
    const auto [found, isNew] = known.try_emplace({function.vendor, function.device});
    if (isNew) {
      found->second = names.find(function.vendor, function.device);
    }
    function.model = found->second;
  }
}

}  // namespace vfpass::inventory
