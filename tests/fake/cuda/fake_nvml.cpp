// A libnvidia-ml without a GPU, for tests. FAKE_NVML_GPUS has a word for each GPU: its PCI address,
// then `=` and the number of MIG instances, or `=off` (MIG is disabled) or `=none` (no MIG).

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

constexpr int success = 0;
constexpr int notSupported = 3;
constexpr int notFound = 6;

struct Gpu {
  std::string address;
  std::string mig;
};

/// A device handle is the GPU's number plus 1.
Gpu gpuOf(std::size_t number) {
  const char* list = std::getenv("FAKE_NVML_GPUS");
  std::istringstream words(list == nullptr ? "" : list);
  std::string word;
  for (std::size_t i = 0; i <= number; ++i) {
    word.clear();
    words >> word;
  }
  const auto equals = word.find('=');
  return {word.substr(0, equals), equals == std::string::npos ? "none" : word.substr(equals + 1)};
}

struct PciInfo {
  char legacyAddress[16];
  unsigned numbers[5];
  char address[32];
};

}  // namespace

extern "C" {

int nvmlInit_v2() { return success; }
int nvmlShutdown() { return success; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  for (*count = 0; !gpuOf(*count).address.empty(); ++*count) {
  }
  return success;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, std::size_t* device) {
  *device = index + 1;
  return success;
}

int nvmlDeviceGetPciInfo_v3(std::size_t device, PciInfo* info) {
  std::snprintf(info->address, sizeof info->address, "%s", gpuOf(device - 1).address.c_str());
  return success;
}

int nvmlDeviceGetMigMode(std::size_t device, unsigned* current, unsigned* pending) {
  const std::string mig = gpuOf(device - 1).mig;
  *current = *pending = mig == "off" ? 0 : 1;
  return mig == "none" ? notSupported : success;
}

int nvmlDeviceGetMaxMigDeviceCount(std::size_t /*device*/, unsigned* count) {
  *count = 7;
  return success;
}

int nvmlDeviceGetMigDeviceHandleByIndex(std::size_t device, unsigned index, std::size_t* instance) {
  *instance = 1000 + index;
  return static_cast<int>(index) < std::atoi(gpuOf(device - 1).mig.c_str()) ? success : notFound;
}

}  // extern "C"
