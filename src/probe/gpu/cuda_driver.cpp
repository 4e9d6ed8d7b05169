#include "gpu/cuda_driver.hpp"

namespace vfpass::probe {
namespace {

constexpr CudaStatus success = 0;

}  // namespace

std::vector<std::string> CudaDriver::usualLibraries() {
  return {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};
}

CudaDriver::CudaDriver(const std::vector<std::string>& libraries)
    : library_(libraries, "install NVIDIA's GPU driver in the guest") {
  library_.require(initialize_, "cuInit");
  library_.require(errorName_, "cuGetErrorName");
  library_.require(errorString_, "cuGetErrorString");
  findDeviceFunctions();
  findMemoryFunctions();
  findKernelFunctions();
  findStreamFunctions();
  check(initialize_(0), "cannot initialize CUDA");
}

void CudaDriver::findDeviceFunctions() {
  library_.require(driverVersion, "cuDriverGetVersion");
  library_.require(deviceCount, "cuDeviceGetCount");
  library_.require(deviceGet, "cuDeviceGet");
  library_.require(deviceName, "cuDeviceGetName");
  library_.require(deviceAttribute, "cuDeviceGetAttribute");
  library_.require(devicePciBusId, "cuDeviceGetPCIBusId");
  library_.require(deviceTotalMemory, "cuDeviceTotalMem_v2");
  library_.require(primaryContextRetain, "cuDevicePrimaryCtxRetain");
  library_.require(primaryContextRelease, "cuDevicePrimaryCtxRelease_v2");
  library_.require(contextSetCurrent, "cuCtxSetCurrent");
  library_.require(contextSynchronize, "cuCtxSynchronize");
}

void CudaDriver::findMemoryFunctions() {
  library_.require(memoryAllocate, "cuMemAlloc_v2");
  library_.require(memoryFree, "cuMemFree_v2");
  library_.require(memoryCopyIn, "cuMemcpyHtoD_v2");
  library_.require(memoryCopyOut, "cuMemcpyDtoH_v2");
  library_.require(memorySet8, "cuMemsetD8_v2");
  library_.require(memorySet32, "cuMemsetD32_v2");
  library_.require(pointerSetAttribute, "cuPointerSetAttribute");
  library_.find(flushRdmaWrites, "cuFlushGPUDirectRDMAWrites");
  library_.find(memoryRangeHandle, "cuMemGetHandleForAddressRange");
}

void CudaDriver::findKernelFunctions() {
  library_.require(moduleLoad, "cuModuleLoadDataEx");
  library_.require(moduleUnload, "cuModuleUnload");
  library_.require(moduleFunction, "cuModuleGetFunction");
  library_.require(launch, "cuLaunchKernel");
  library_.require(eventCreate, "cuEventCreate");
  library_.require(eventDestroy, "cuEventDestroy_v2");
  library_.require(eventRecord, "cuEventRecord");
  library_.require(eventSynchronize, "cuEventSynchronize");
  library_.require(eventElapsed, "cuEventElapsedTime");
}

void CudaDriver::findStreamFunctions() {
  library_.find(streamCreate, "cuStreamCreate");
  library_.find(streamDestroy, "cuStreamDestroy_v2");
  library_.find(streamQuery, "cuStreamQuery");
  library_.find(memoryInfo, "cuMemGetInfo_v2");
}

std::string CudaDriver::describe(CudaStatus status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (errorName_(status, &name) != success || errorString_(status, &text) != success) {
    return "CUDA status " + std::to_string(status);
  }
  return std::string(text) + " (" + name + ")";
}

void CudaDriver::check(CudaStatus status, const std::string& what) const {
  if (status != success) {
    throw CudaError(status, what + ": " + describe(status),
                    "check nvidia-smi and the guest's dmesg");
  }
}

}  // namespace vfpass::probe
