// A libcuda without a GPU, for tests: its GPUs and errors come from environment variables.
//   FAKE_CUDA_INIT    status of cuInit
//   FAKE_CUDA_GPUS    PCI addresses, separated by spaces, in CUDA's order
//   FAKE_CUDA_NAME    name of every GPU
//   FAKE_CUDA_CONTEXT status of cuDevicePrimaryCtxRetain
//   FAKE_CUDA_FREE    free bytes of every GPU
//   FAKE_CUDA_116     value of device attribute 116, and so on; 1 if it is not set
// It implements only what listing and opening GPUs needs, and for NCCL memory of the GPU, which is
// the host's, and streams, whose work is done at once. All other functions of the real library
// exist and return CUDA_ERROR_NOT_SUPPORTED.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int success = 0;
constexpr int invalidDevice = 101;
constexpr int notSupported = 801;

std::string variable(const std::string& name, const char* fallback) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? fallback : value;
}

int number(const std::string& name, const char* fallback) {
  return std::atoi(variable(name, fallback).c_str());
}

std::vector<std::string> gpus() {
  std::istringstream words(variable("FAKE_CUDA_GPUS", ""));
  std::vector<std::string> addresses;
  for (std::string word; words >> word;) {
    addresses.push_back(word);
  }
  return addresses;
}

int copy(const std::string& text, char* buffer, int size) {
  std::snprintf(buffer, static_cast<std::size_t>(size), "%s", text.c_str());
  return success;
}

}  // namespace

extern "C" {

int cuInit(unsigned /*flags*/) { return number("FAKE_CUDA_INIT", "0"); }

int cuGetErrorName(int status, const char** name) {
  static std::string text;
  text = "CUDA_ERROR_" + std::to_string(status);
  *name = text.c_str();
  return success;
}

int cuGetErrorString(int status, const char** message) {
  static std::string text;
  text = "fake error " + std::to_string(status);
  *message = text.c_str();
  return success;
}

int cuDriverGetVersion(int* version) {
  *version = 12080;
  return success;
}

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(gpus().size());
  return success;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return index >= 0 && index < static_cast<int>(gpus().size()) ? success : invalidDevice;
}

int cuDeviceGetName(char* name, int size, int /*device*/) {
  return copy(variable("FAKE_CUDA_NAME", "Fake GPU"), name, size);
}

int cuDeviceGetPCIBusId(char* address, int size, int device) {
  return copy(gpus().at(static_cast<std::size_t>(device)), address, size);
}

int cuDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  *value = number("FAKE_CUDA_" + std::to_string(attribute), "1");
  return success;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int /*device*/) {
  *bytes = std::size_t{80} << 30U;
  return success;
}

int cuDevicePrimaryCtxRetain(void** /*context*/, int /*device*/) {
  return number("FAKE_CUDA_CONTEXT", "801");
}

int cuDevicePrimaryCtxRelease_v2(int /*device*/) { return success; }
int cuCtxSetCurrent(void* /*context*/) { return success; }
int cuCtxSynchronize() { return success; }

int cuMemAlloc_v2(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  return success;
}

int cuMemFree_v2(void* memory) {
  std::free(memory);
  return success;
}

int cuMemcpyHtoD_v2(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return success;
}

int cuMemcpyDtoH_v2(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return success;
}

int cuMemsetD8_v2(void* memory, unsigned char value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return success;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = std::strtoull(variable("FAKE_CUDA_FREE", "8589934592").c_str(), nullptr, 10);
  *total = std::size_t{80} << 30U;
  return success;
}

int cuStreamCreate(void** stream, unsigned /*flags*/) {
  *stream = stream;
  return success;
}

int cuStreamDestroy_v2(void* /*stream*/) { return success; }
int cuStreamQuery(void* /*stream*/) { return success; }

#define NOT_SUPPORTED(name) \
  int name() { return notSupported; }
NOT_SUPPORTED(cuMemsetD32_v2)
NOT_SUPPORTED(cuPointerSetAttribute)
NOT_SUPPORTED(cuModuleLoadDataEx)
NOT_SUPPORTED(cuModuleUnload)
NOT_SUPPORTED(cuModuleGetFunction)
NOT_SUPPORTED(cuLaunchKernel)
NOT_SUPPORTED(cuEventCreate)
NOT_SUPPORTED(cuEventDestroy_v2)
NOT_SUPPORTED(cuEventRecord)
NOT_SUPPORTED(cuEventSynchronize)
NOT_SUPPORTED(cuEventElapsedTime)

}  // extern "C"
