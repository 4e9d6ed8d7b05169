#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda_driver.hpp"
#include "nccl/nccl_library.hpp"
#include "nccl/nccl_values.hpp"

namespace vfpass::probe {

enum class Collective { allReduce, allGather };
std::string collectiveName(Collective collective);  ///< `all-reduce`, `all-gather`

/// One GPU with its primary context, a stream and buffers; the place of one rank.
class RankGpu {
 public:
  /// Throws Error if there is no such GPU or it cannot be used.
  RankGpu(std::shared_ptr<const CudaDriver> driver, const GpuChoice& choice);
  RankGpu(const RankGpu&) = delete;
  RankGpu& operator=(const RankGpu&) = delete;
  ~RankGpu();

  [[nodiscard]] std::string name() const { return nameOf(*driver_, device_); }
  [[nodiscard]] std::string pciAddress() const { return pciAddressOf(*driver_, device_); }
  [[nodiscard]] CudaStream stream() const { return stream_; }
  [[nodiscard]] CudaAddress source() const { return source_; }
  [[nodiscard]] CudaAddress destination() const { return destination_; }
  [[nodiscard]] CudaAddress exchange() const { return exchange_; }

  /// For the calling thread.
  void makeCurrent() const;
  [[nodiscard]] std::uint64_t freeBytes() const;
  /// Allocates source and destination, of this size each.
  void allocate(std::uint64_t bytes);
  /// Overwrites the first bytes of the destination with bytes that are not a number as a float.
  void poison(std::uint64_t bytes) const;
  /// True once the stream has no work left.
  [[nodiscard]] bool idle() const;
  void copyIn(CudaAddress to, const void* from, std::uint64_t bytes) const;
  void copyOut(void* to, CudaAddress from, std::uint64_t bytes) const;

 private:
  [[nodiscard]] CudaAddress newMemory(std::uint64_t bytes) const;
  void release();

  std::shared_ptr<const CudaDriver> driver_;
  CudaDevice device_ = 0;
  CudaContext context_ = nullptr;
  CudaStream stream_ = nullptr;
  CudaAddress source_ = 0;
  CudaAddress destination_ = 0;
  CudaAddress exchange_ = 0;  ///< for numbers on which the ranks agree
};

/// A figure of one collective operation and size. The same on all ranks, except for the values.
struct CollectiveRun {
  Collective collective = Collective::allReduce;
  std::uint64_t bytes = 0;  ///< as nccl-tests counts: of the whole result on each rank
  unsigned iterations = 0;
  double seconds = 0;  ///< of one operation, on the slowest rank
  std::uint64_t checkedValues = 0;
  WrongValues wrong = {};
  unsigned wrongRank = 0;  ///< with the first wrong value
};

/// Bytes per second and rank over the links between ranks, as nccl-tests defines it: the ratio to a
/// link's rate does not depend on the number of ranks (nccl-tests, doc/PERFORMANCE.md).
double busBandwidth(const CollectiveRun& run, unsigned ranks);

/// What decides the number of iterations.
struct CollectiveLimits {
  unsigned iterations = 20;  ///< as in nccl-tests
  double seconds = 10;       ///< of the timed iterations of one size; at least one in any case
  double left = 0;           ///< seconds that all runs together may still take, on this process
};

/// How often an operation runs.
struct Iterations {
  unsigned warmUps = 0;
  unsigned timed = 0;  ///< 0: one alone takes longer than what is left
};

/// For an operation of which one takes `seconds`: warm-ups and timed iterations end within
/// `limits.left`, if one does. Pure.
Iterations iterationsFor(double seconds, const CollectiveLimits& limits);

/// The ranks of this process in a communicator. All processes have to call the same functions with
/// the same arguments.
class NcclRanks {
 public:
  /// `first`: number of the first GPU's rank. References must outlive the object.
  NcclRanks(const NcclLibrary& nccl, const std::vector<std::unique_ptr<RankGpu>>& gpus,
            unsigned ranks, unsigned first);
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  /// Creates the communicator; returns when all ranks have met. NCCL has no deadline for it.
  void meet(const NcclUniqueId& id);
  /// Allocates buffers for messages up to `wanted` bytes, or up to what every rank's GPU has free.
  /// Returns their size.
  std::uint64_t prepare(std::uint64_t wanted);
  /// Runs warm-up and timed iterations, then checks every value of the last one on these ranks.
  /// Returns no iterations if one alone would take longer than `limits.left`.
  CollectiveRun run(Collective collective, std::uint64_t bytes, const CollectiveLimits& limits);
  /// Only after success: otherwise it waits for the other ranks.
  void part();

 private:
  template <typename Start>
  void together(const std::string& what, const Start& start) const;
  void waitForAll(const std::string& what) const;
  void start(Collective collective, std::uint64_t bytes) const;
  [[nodiscard]] double secondsOf(Collective collective, std::uint64_t bytes,
                                 unsigned iterations) const;
  [[nodiscard]] std::vector<double> largestOf(const std::vector<double>& numbers) const;
  void eachInParallel(const std::function<void(std::size_t)>& work) const;
  [[nodiscard]] WrongValues check(std::size_t local, Collective collective,
                                  std::uint64_t bytes) const;

  const NcclLibrary& nccl_;
  const std::vector<std::unique_ptr<RankGpu>>& gpus_;
  std::vector<NcclCommunicator> communicators_;
  unsigned ranks_ = 0;
  unsigned first_ = 0;
};

}  // namespace vfpass::probe
