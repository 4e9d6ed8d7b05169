#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vfpass {

/// Why CUDA cannot use a guest's GPUs. The probe determines it in the guest; its code, remedy and
/// description are the same on both sides. Statuses are those of the CUDA driver API (CUresult).
enum class CudaProblem {
  libraryMissing,      ///< no libcuda, although the kernel module is loaded
  driverMissing,       ///< neither libcuda nor the kernel module
  moduleNotLoaded,     ///< libcuda, but no kernel module
  notBound,            ///< the module is loaded, but another driver, or none, has the GPUs
  noGpu,               ///< the guest has no NVIDIA GPU
  noDevice,            ///< 100, although the module has a GPU
  migWithoutInstance,  ///< 100, because MIG is enabled and no instance exists
  invalidDevice,       ///< 101
  deviceUnavailable,   ///< 46: the compute mode
  onRootBus,           ///< 3, with a GPU that has no PCI Express port above it
  notInitialized,      ///< 3, otherwise
  stubLibrary,         ///< 34: the toolkit's stub instead of the driver's library
  driverTooOld,        ///< 35 (of the runtime API), 36
  compatLibrary,       ///< 804: the compatibility library does not support the GPU
  notLicensed,         ///< 102: a vGPU without a licence
  osCallFailed,        ///< 304
  fabricNotReady,      ///< 802
  driverMismatch,      ///< 803: libcuda and the kernel module differ in version
  uvmMissing,          ///< 999, without nvidia_uvm or its device file
  unknown,             ///< 999, otherwise
  other,               ///< any other status
};

std::string_view toString(CudaProblem problem);  ///< `fabric-not-ready`: the code in JSON
std::optional<CudaProblem> parseCudaProblem(std::string_view code);

/// What is known from the status alone.
CudaProblem cudaProblemOf(int status);

/// A phrase that describes the problem.
std::string describe(CudaProblem problem);
/// What to do, in general. How to set up a fabric (fabricNotReady) depends on the mapping.
std::string remedyFor(CudaProblem problem);

}  // namespace vfpass
