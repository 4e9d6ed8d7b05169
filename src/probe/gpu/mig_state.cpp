#include "gpu/mig_state.hpp"

#include <algorithm>
#include <array>

#include "vfpass/base/shared_library.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using NvmlDevice = struct NvmlDeviceTag*;

// nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 (NVML API reference manual).
struct NvmlPciInfo {
  std::array<char, 16> legacyAddress;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned deviceId;
  unsigned subsystemId;
  std::array<char, 32> address;
};

class Nvml {
 public:
  explicit Nvml(const std::vector<std::string>& libraries) : library_(libraries, "") {
    library_.require(initialize_, "nvmlInit_v2");
    library_.require(shutdown_, "nvmlShutdown");
    library_.require(count_, "nvmlDeviceGetCount_v2");
    library_.require(byIndex_, "nvmlDeviceGetHandleByIndex_v2");
    library_.require(pciInfo_, "nvmlDeviceGetPciInfo_v3");
    library_.require(migMode_, "nvmlDeviceGetMigMode");
    library_.require(maxMig_, "nvmlDeviceGetMaxMigDeviceCount");
    library_.require(migDevice_, "nvmlDeviceGetMigDeviceHandleByIndex");
    if (initialize_() != 0) {
      throw Error("cannot initialize NVML", "");
    }
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() { shutdown_(); }

  [[nodiscard]] std::vector<MigState> read() const {
    constexpr unsigned maxGpus = 64;
    unsigned count = 0;
    std::vector<MigState> states;
    for (unsigned i = 0; count_(&count) == 0 && i < std::min(count, maxGpus); ++i) {
      NvmlDevice device = nullptr;
      NvmlPciInfo pci{};
      unsigned current = 0;
      unsigned pending = 0;
      // GPUs without MIG return NVML_ERROR_NOT_SUPPORTED.
      if (byIndex_(i, &device) == 0 && pciInfo_(device, &pci) == 0 &&
          migMode_(device, &current, &pending) == 0) {
        pci.address.back() = '\0';
        states.push_back({toLower(pci.address.data()), current == 1, instancesOf(device)});
      }
    }
    return states;
  }

 private:
  [[nodiscard]] unsigned instancesOf(NvmlDevice device) const {
    constexpr unsigned maxInstances = 64;
    unsigned limit = 0;
    unsigned found = 0;
    if (maxMig_(device, &limit) != 0) {
      return 0;
    }
    for (unsigned i = 0; i < std::min(limit, maxInstances); ++i) {
      NvmlDevice instance = nullptr;
      found += migDevice_(device, i, &instance) == 0 ? 1U : 0U;
    }
    return found;
  }

  SharedLibrary library_;
  int (*initialize_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*byIndex_)(unsigned, NvmlDevice*) = nullptr;
  int (*pciInfo_)(NvmlDevice, NvmlPciInfo*) = nullptr;
  int (*migMode_)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*maxMig_)(NvmlDevice, unsigned*) = nullptr;
  int (*migDevice_)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
};

}  // namespace

std::vector<MigState> readMigStates(const std::vector<std::string>& libraries) {
  try {
    return Nvml(libraries).read();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace vfpass::probe
