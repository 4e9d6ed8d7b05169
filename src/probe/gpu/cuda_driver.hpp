#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "system/sysfs_reader.hpp"
#include "vfpass/base/shared_library.hpp"
#include "vfpass/error.hpp"
#include "vfpass/pci_address.hpp"

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
  void require(CudaStatus status, const std::string& what) const;
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

/// Which GPU to use: a CUDA device index, or a PCI address in the guest, which unlike CUDA's order
/// depends neither on CUDA_DEVICE_ORDER nor on CUDA_VISIBLE_DEVICES.
using GpuChoice = std::variant<int, PciAddress>;

/// Reads `0` or `0000:05:00.0` (also without domain). Throws Error for anything else.
GpuChoice parseGpuChoice(std::string_view text);

/// `GPU 0`, `GPU 0000:05:00.0`
std::string describe(const GpuChoice& choice);

/// Lets CUDA initialize no GPU but this one, with CUDA_VISIBLE_DEVICES: cuInit takes longer with
/// each GPU of the guest (docs/performance.md). Does nothing for a device index, if the variable is
/// set already, and if NVIDIA's driver does not tell the GPU's UUID, which it knows once the GPU
/// has been used. Takes effect only before the first CudaDriver of the process.
void hideOtherGpus(const GpuChoice& choice, const SysfsReader& files = SysfsReader());

/// The GPU's product name. Throws CudaError.
std::string nameOf(const CudaDriver& driver, CudaDevice device);

/// The GPU's PCI address as CUDA writes it, in lower case. Throws CudaError.
std::string pciAddressOf(const CudaDriver& driver, CudaDevice device);

/// Throws Error if CUDA has no such GPU; the message then lists those that it has.
CudaDevice findGpu(const CudaDriver& driver, const GpuChoice& choice);

/// Layout of messages in GPU memory, for the kernels.
struct GpuMessages {
  CudaAddress base = 0;           ///< of the first message; any alignment
  unsigned long long stride = 0;  ///< from one message to the next, in bytes
  unsigned long long size = 0;    ///< of each message, in bytes
  unsigned long long count = 1;
  unsigned long long firstMessage = 0;
};

/// gpu/kernels.ptx, null-terminated as cuModuleLoadDataEx requires.
extern const char* const kernelsPtx;

/// One GPU with its primary context and the kernels loaded into it.
class Gpu {
 public:
  /// Throws Error if there is no such GPU or the kernels do not load.
  Gpu(std::shared_ptr<const CudaDriver> driver, const GpuChoice& choice);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  [[nodiscard]] const CudaDriver& driver() const { return *driver_; }
  [[nodiscard]] std::string name() const { return nameOf(*driver_, device_); }
  /// PCI address in the guest, `0000:05:00.0`, in lower case.
  [[nodiscard]] std::string pciAddress() const { return pciAddressOf(*driver_, device_); }
  [[nodiscard]] int attribute(CudaAttribute attribute) const;

  /// Makes this GPU's context current in the calling thread. Every thread must do so before it uses
  /// the GPU.
  void makeCurrent() const;

  /// Starts the kernels, which run one after another. `inversion`: 0 for the pattern, all ones for
  /// poison.
  void startFill(const GpuMessages& messages, std::uint64_t seed, std::uint64_t inversion) const;
  /// `results` is GPU memory: two words for each message, initially all ones and 0. See
  /// gpu/kernels.cu.
  void startCheck(const GpuMessages& messages, std::uint64_t seed, CudaAddress results) const;
  void wait() const;

  /// Makes other devices' writes to this GPU's memory visible to its kernels, on GPUs that need it.
  /// Throws Error if that fails.
  void flushForeignWrites() const;

 private:
  void launch(CudaFunction function, const GpuMessages& messages, std::uint64_t seed,
              unsigned long long last) const;
  void loadKernels();

  std::shared_ptr<const CudaDriver> driver_;
  CudaDevice device_ = 0;
  CudaContext context_ = nullptr;
  CudaModule module_ = nullptr;
  CudaFunction fill_ = nullptr;
  CudaFunction check_ = nullptr;
};

/// Loads CUDA and opens this GPU; no other GPU of the guest is initialized if the choice is an
/// address. Throws Error.
std::shared_ptr<const Gpu> openGpu(const GpuChoice& choice);

}  // namespace vfpass::probe
