#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vfpass/base/shared_library.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

// The part of NVIDIA's driver interface that the probe uses, declared here because Debian has no
// CUDA headers. Names, values and signatures are those of the CUDA driver API's reference manual,
// which keeps them stable; functions that changed once carry the suffix _v2 in libcuda.
using CudaStatus = int;
using CudaDevice = int;
using CudaAddress = unsigned long long;
using CudaContext = struct CudaContextTag*;
using CudaModule = struct CudaModuleTag*;
using CudaFunction = struct CudaFunctionTag*;
using CudaEvent = struct CudaEventTag*;
using CudaStream = struct CudaStreamTag*;

/// CUdevice_attribute
enum class CudaAttribute : int {
  computeCapabilityMajor = 75,
  computeCapabilityMinor = 76,
  gpuDirectRdmaSupported = 116,
  gpuDirectRdmaFlushOptions = 117,
  gpuDirectRdmaWritesOrdering = 118,
  dmaBufSupported = 124,
};

/// A failed CUDA call, with its status, because some have remedies of their own.
class CudaError : public Error {
 public:
  CudaError(CudaStatus status, const std::string& message, const std::string& remedy)
      : Error(message, remedy), status_(status) {}
  [[nodiscard]] CudaStatus status() const { return status_; }

 private:
  CudaStatus status_;
};

/// libcuda, loaded at run time: it comes with the GPU driver.
class CudaDriver {
 public:
  /// Loads and initializes it. Throws Error if it is missing, CudaError if it finds no usable
  /// driver. The first of `libraries` that can be loaded is used.
  explicit CudaDriver(const std::vector<std::string>& libraries = usualLibraries());
  static std::vector<std::string> usualLibraries();

  /// Throws CudaError with the driver's message unless `status` is success. `what` names the failed
  /// operation: `cannot open GPU 0`.
  void check(CudaStatus status, const std::string& what) const;
  /// CUDA's message and name for a status.
  [[nodiscard]] std::string describe(CudaStatus status) const;

  CudaStatus (*driverVersion)(int*) = nullptr;
  CudaStatus (*deviceCount)(int*) = nullptr;
  CudaStatus (*deviceGet)(CudaDevice*, int) = nullptr;
  CudaStatus (*deviceName)(char*, int, CudaDevice) = nullptr;
  CudaStatus (*deviceAttribute)(int*, CudaAttribute, CudaDevice) = nullptr;
  CudaStatus (*devicePciBusId)(char*, int, CudaDevice) = nullptr;
  CudaStatus (*deviceTotalMemory)(std::size_t*, CudaDevice) = nullptr;
  CudaStatus (*primaryContextRetain)(CudaContext*, CudaDevice) = nullptr;
  CudaStatus (*primaryContextRelease)(CudaDevice) = nullptr;
  CudaStatus (*contextSetCurrent)(CudaContext) = nullptr;
  CudaStatus (*contextSynchronize)() = nullptr;
  CudaStatus (*memoryAllocate)(CudaAddress*, std::size_t) = nullptr;
  CudaStatus (*memoryFree)(CudaAddress) = nullptr;
  CudaStatus (*memoryCopyIn)(CudaAddress, const void*, std::size_t) = nullptr;
  CudaStatus (*memoryCopyOut)(void*, CudaAddress, std::size_t) = nullptr;
  CudaStatus (*memorySet8)(CudaAddress, unsigned char, std::size_t) = nullptr;
  CudaStatus (*memorySet32)(CudaAddress, unsigned, std::size_t) = nullptr;
  CudaStatus (*pointerSetAttribute)(const void*, int, CudaAddress) = nullptr;
  CudaStatus (*moduleLoad)(CudaModule*, const void*, unsigned, int*, void**) = nullptr;
  CudaStatus (*moduleUnload)(CudaModule) = nullptr;
  CudaStatus (*moduleFunction)(CudaFunction*, CudaModule, const char*) = nullptr;
  CudaStatus (*launch)(CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CudaStream, void**, void**) = nullptr;
  CudaStatus (*eventCreate)(CudaEvent*, unsigned) = nullptr;
  CudaStatus (*eventDestroy)(CudaEvent) = nullptr;
  CudaStatus (*eventRecord)(CudaEvent, CudaStream) = nullptr;
  CudaStatus (*eventSynchronize)(CudaEvent) = nullptr;
  CudaStatus (*eventElapsed)(float*, CudaEvent, CudaEvent) = nullptr;
  /// These four only serve NCCL; nullptr in a stand-in for the driver that lacks them.
  CudaStatus (*streamCreate)(CudaStream*, unsigned) = nullptr;
  CudaStatus (*streamDestroy)(CudaStream) = nullptr;
  CudaStatus (*streamQuery)(CudaStream) = nullptr;  ///< 0: all of its work is done
  CudaStatus (*memoryInfo)(std::size_t* free, std::size_t* total) = nullptr;
  /// nullptr in drivers before R470 (CUDA 11.3).
  CudaStatus (*flushRdmaWrites)(int, int) = nullptr;
  /// nullptr in drivers before R515 (CUDA 11.7).
  CudaStatus (*memoryRangeHandle)(void*, CudaAddress, std::size_t, int,
                                  unsigned long long) = nullptr;

 private:
  void findDeviceFunctions();
  void findMemoryFunctions();
  void findKernelFunctions();
  void findStreamFunctions();

  SharedLibrary library_;
  CudaStatus (*initialize_)(unsigned) = nullptr;
  CudaStatus (*errorName_)(CudaStatus, const char**) = nullptr;
  CudaStatus (*errorString_)(CudaStatus, const char**) = nullptr;
};

}  // namespace vfpass::probe
