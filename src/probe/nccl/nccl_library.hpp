#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "gpu/cuda_driver.hpp"
#include "vfpass/base/shared_library.hpp"

namespace vfpass::probe {

// The part of NCCL's interface that the probe uses, declared here because Debian has no NCCL
// headers. Names, values and signatures are those of nccl.h, unchanged since NCCL 2.4.
using NcclResult = int;
using NcclCommunicator = struct NcclCommunicatorTag*;

/// ncclDataType_t
enum class NcclType : int { float32 = 7, float64 = 8 };
/// ncclRedOp_t
enum class NcclReduction : int { sum = 0, maximum = 2 };

/// ncclUniqueId. With it all ranks of a communicator find rank 0, whose address it has.
struct NcclUniqueId {
  std::array<char, 128> internal;
};

/// `2.28.9` for the number that ncclGetVersion returns: up to 2.8 it has two digits after the
/// major version (2804), later ones have three or more (22809).
std::string ncclVersionText(int version);

/// libnccl, loaded at run time.
class NcclLibrary {
 public:
  /// The first version whose network transport registers GPU memory as DMA-BUF is 2.13. The
  /// published figure is of 2.14.
  static constexpr int oldestVersion = 21300;

  /// The first of `libraries` that can be loaded is used. Throws Error if there is none, it lacks a
  /// function or is older than oldestVersion.
  explicit NcclLibrary(const std::vector<std::string>& libraries = usualLibraries());
  static std::vector<std::string> usualLibraries();

  [[nodiscard]] int version() const { return version_; }

  /// Throws Error with NCCL's message unless `result` is success. `what` names what failed.
  void require(NcclResult result, const std::string& what) const;
  /// Throws the error that this communicator has reported since it was created, if any.
  void requireNoAsyncError(NcclCommunicator communicator, const std::string& what) const;

  NcclResult (*getUniqueId)(NcclUniqueId*) = nullptr;
  NcclResult (*initRank)(NcclCommunicator*, int, NcclUniqueId, int) = nullptr;
  NcclResult (*destroy)(NcclCommunicator) = nullptr;
  NcclResult (*groupStart)() = nullptr;
  NcclResult (*groupEnd)() = nullptr;
  /// Addresses of GPU memory are pointers in nccl.h.
  NcclResult (*allReduce)(CudaAddress, CudaAddress, std::size_t, NcclType, NcclReduction,
                          NcclCommunicator, CudaStream) = nullptr;
  NcclResult (*allGather)(CudaAddress, CudaAddress, std::size_t, NcclType, NcclCommunicator,
                          CudaStream) = nullptr;

 private:
  void findFunctions();

  SharedLibrary library_;
  int version_ = 0;
  NcclResult (*getVersion_)(int*) = nullptr;
  NcclResult (*getAsyncError_)(NcclCommunicator, NcclResult*) = nullptr;
  const char* (*errorString_)(NcclResult) = nullptr;
  const char* (*lastError_)(NcclCommunicator) = nullptr;  ///< nullptr before 2.13
};

}  // namespace vfpass::probe
