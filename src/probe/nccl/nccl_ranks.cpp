#include "nccl/nccl_ranks.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <utility>

#include "transfer/timing.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr std::uint32_t valueSeed = 0x5eed;
constexpr std::uint64_t valuesPerCopy = std::uint64_t{4} << 20U;
constexpr unsigned warmUps = 5;  // as in nccl-tests
// NCCL's own buffers: about 10 MB for each channel and peer.
constexpr std::uint64_t reservedBytes = std::uint64_t{2} << 30U;

/// Splits values into parts that fit into one copy.
template <typename Use>
void forEachPart(std::uint64_t values, const Use& use) {
  for (std::uint64_t from = 0; from < values; from += valuesPerCopy) {
    use(from, std::min(valuesPerCopy, values - from));
  }
}

float factorOf(unsigned rank) { return static_cast<float>(rank + 1); }

/// Values of one rank's contribution to a result of this size.
std::uint64_t contribution(Collective collective, std::uint64_t bytes, unsigned ranks) {
  const std::uint64_t values = bytes / sizeof(float);
  return collective == Collective::allReduce ? values : values / ranks;
}

}  // namespace

std::string collectiveName(Collective collective) {
  return collective == Collective::allReduce ? "all-reduce" : "all-gather";
}

double busBandwidth(const CollectiveRun& run, unsigned ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  const double factor = run.collective == Collective::allReduce ? 2 * others : others;
  return run.seconds > 0 ? static_cast<double>(run.bytes) / run.seconds * factor : 0;
}

Iterations iterationsFor(double seconds, const CollectiveLimits& limits) {
  constexpr double shortest = 1e-9;  // of one operation: the clock may not have moved
  const double single = std::max(seconds, shortest);
  if (single > limits.left) {
    return {};
  }
  // More than these do not run in any case.
  const double most = limits.iterations + warmUps;
  const auto affordable = static_cast<unsigned>(std::min(std::floor(limits.left / single), most));
  const auto wanted = static_cast<unsigned>(
      std::clamp(std::floor(limits.seconds / single), 1.0, static_cast<double>(limits.iterations)));
  // As many warm-ups as timed ones, up to the usual number.
  const unsigned timed =
      std::max(1U, affordable - std::min(affordable / 2 + affordable % 2, warmUps));
  Iterations result;
  result.timed = std::min(wanted, timed);
  result.warmUps = std::min({warmUps, result.timed, affordable - result.timed});
  return result;
}

NcclRanks::NcclRanks(const NcclLibrary& nccl, const std::vector<std::unique_ptr<RankGpu>>& gpus,
                     unsigned ranks, unsigned first)
    : nccl_(nccl),
      gpus_(gpus),
      communicators_(gpus.size(), nullptr),
      ranks_(ranks),
      first_(first) {}

/// Calls `start` for each rank of this process in one group, because each call alone would wait for
/// the others.
template <typename Start>
void NcclRanks::together(const std::string& what, const Start& start) const {
  nccl_.require(nccl_.groupStart(), what);
  for (std::size_t local = 0; local < gpus_.size(); ++local) {
    gpus_[local]->makeCurrent();
    nccl_.require(start(local), what);
  }
  nccl_.require(nccl_.groupEnd(), what);
}

void NcclRanks::meet(const NcclUniqueId& id) {
  together("cannot create the communicator", [&](std::size_t local) {
    return nccl_.initRank(&communicators_[local], static_cast<int>(ranks_), id,
                          static_cast<int>(first_ + local));
  });
}

void NcclRanks::part() {
  for (const NcclCommunicator each : communicators_) {
    nccl_.require(nccl_.destroy(each), "cannot close the communicator");
  }
}

/// Without sleeping, because the time is measured. Asks NCCL now and then: its proxy thread reports
/// a lost connection, and the kernel on the GPU would wait forever.
void NcclRanks::waitForAll(const std::string& what) const {
  constexpr unsigned pollsPerQuestion = 4096;
  for (std::size_t local = 0; local < gpus_.size(); ++local) {
    gpus_[local]->makeCurrent();
    for (unsigned polls = 1; !gpus_[local]->idle(); ++polls) {
      if (polls % pollsPerQuestion == 0) {
        nccl_.requireNoAsyncError(communicators_[local], what);
      }
      ::sched_yield();
    }
    nccl_.requireNoAsyncError(communicators_[local], what);
  }
}

std::vector<double> NcclRanks::largestOf(const std::vector<double>& numbers) const {
  const std::uint64_t bytes = numbers.size() * sizeof(double);
  const std::string what = "the ranks cannot exchange figures";
  for (const auto& gpu : gpus_) {
    gpu->copyIn(gpu->exchange(), numbers.data(), bytes);
  }
  together(what, [&](std::size_t local) {
    const RankGpu& gpu = *gpus_[local];
    return nccl_.allReduce(gpu.exchange(), gpu.exchange(), numbers.size(), NcclType::float64,
                           NcclReduction::maximum, communicators_[local], gpu.stream());
  });
  waitForAll(what);
  std::vector<double> largest(numbers.size());
  gpus_.front()->copyOut(largest.data(), gpus_.front()->exchange(), bytes);
  return largest;
}

void NcclRanks::eachInParallel(const std::function<void(std::size_t)>& work) const {
  std::vector<std::future<void>> running;
  for (std::size_t local = 0; local < gpus_.size(); ++local) {
    running.push_back(std::async(std::launch::async, work, local));
  }
  for (auto& each : running) {
    each.get();
  }
}

std::uint64_t NcclRanks::prepare(std::uint64_t wanted) {
  double least = static_cast<double>(wanted);
  for (const auto& gpu : gpus_) {
    const std::uint64_t free = gpu->freeBytes();
    least = std::min(least, static_cast<double>(free - std::min(free, reservedBytes)) / 2);
  }
  constexpr std::uint64_t unit = 4096;
  const auto agreed = static_cast<std::uint64_t>(-largestOf({-least}).front()) / unit * unit;
  const std::uint64_t bytes = std::max(agreed, unit);
  eachInParallel([&](std::size_t local) {
    RankGpu& gpu = *gpus_[local];
    gpu.allocate(bytes);
    std::vector<float> values(std::min(valuesPerCopy, bytes / sizeof(float)));
    forEachPart(bytes / sizeof(float), [&](std::uint64_t from, std::uint64_t count) {
      const auto rank = static_cast<unsigned>(first_ + local);
      fillValues(std::span(values).first(count), from, valueSeed, factorOf(rank));
      gpu.copyIn(gpu.source() + from * sizeof(float), values.data(), count * sizeof(float));
    });
  });
  return bytes;
}

void NcclRanks::start(Collective collective, std::uint64_t bytes) const {
  const std::uint64_t values = contribution(collective, bytes, ranks_);
  together("cannot start " + collectiveName(collective), [&](std::size_t local) {
    const RankGpu& gpu = *gpus_[local];
    return collective == Collective::allReduce
               ? nccl_.allReduce(gpu.source(), gpu.destination(), values, NcclType::float32,
                                 NcclReduction::sum, communicators_[local], gpu.stream())
               : nccl_.allGather(gpu.source(), gpu.destination(), values, NcclType::float32,
                                 communicators_[local], gpu.stream());
  });
}

double NcclRanks::secondsOf(Collective collective, std::uint64_t bytes, unsigned iterations) const {
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < iterations; ++i) {
    start(collective, bytes);
  }
  waitForAll(collectiveName(collective) + " of " + std::to_string(bytes) + " bytes failed");
  return secondsSince(begin) / iterations;
}

CollectiveRun NcclRanks::run(Collective collective, std::uint64_t bytes,
                             const CollectiveLimits& limits) {
  CollectiveRun result{collective, bytes};
  // The first operation of a kind may connect ranks; the second shows how long one takes. The
  // ranks agree on it, so that all of them run the same number.
  static_cast<void>(secondsOf(collective, bytes, 1));
  const double single = secondsOf(collective, bytes, 1);
  const auto agreed = largestOf({single, -limits.left});
  CollectiveLimits agreedLimits = limits;
  agreedLimits.left = -agreed[1];
  const Iterations iterations = iterationsFor(agreed[0], agreedLimits);
  result.iterations = iterations.timed;
  if (iterations.timed == 0) {
    return result;
  }
  if (iterations.warmUps > 0) {
    static_cast<void>(secondsOf(collective, bytes, iterations.warmUps));
  }
  for (const auto& gpu : gpus_) {
    gpu->poison(bytes);
  }
  static_cast<void>(largestOf({0}));  // all ranks begin together
  result.seconds = largestOf({secondsOf(collective, bytes, result.iterations)}).front();

  std::vector<WrongValues> wrong(gpus_.size());
  eachInParallel([&](std::size_t local) { wrong[local] = check(local, collective, bytes); });
  for (std::size_t local = 0; local < gpus_.size(); ++local) {
    if (result.wrong.count == 0 && wrong[local].count != 0) {
      result.wrongRank = static_cast<unsigned>(first_ + local);
    }
    result.wrong.add(wrong[local]);
  }
  result.checkedValues = gpus_.size() * contribution(collective, bytes, ranks_) *
                         (collective == Collective::allReduce ? 1 : ranks_);
  return result;
}

/// The sum over all ranks has the sum of their factors; a gathered part has its rank's.
WrongValues NcclRanks::check(std::size_t local, Collective collective, std::uint64_t bytes) const {
  const RankGpu& gpu = *gpus_[local];
  const std::uint64_t values = contribution(collective, bytes, ranks_);
  const unsigned parts = collective == Collective::allReduce ? 1 : ranks_;
  const float sumOfFactors = static_cast<float>(ranks_ * (ranks_ + 1) / 2);
  std::vector<float> copy(std::min(valuesPerCopy, values));
  WrongValues wrong;
  for (unsigned part = 0; part < parts; ++part) {
    const float factor = collective == Collective::allReduce ? sumOfFactors : factorOf(part);
    forEachPart(values, [&](std::uint64_t from, std::uint64_t count) {
      const std::uint64_t place = part * values + from;
      gpu.copyOut(copy.data(), gpu.destination() + place * sizeof(float), count * sizeof(float));
      WrongValues found = compareValues(std::span(copy).first(count), from, valueSeed, factor);
      found.first += part * values;
      wrong.add(found);
    });
  }
  return wrong;
}

namespace {

// CU_STREAM_NON_BLOCKING: as nccl-tests, so that the default stream's work does not wait for it.
constexpr unsigned nonBlockingStream = 1;
constexpr CudaStatus notReady = 600;  // CUDA_ERROR_NOT_READY
constexpr std::uint64_t exchangeBytes = 4096;

void requireStreams(const CudaDriver& driver) {
  if (driver.streamCreate == nullptr || driver.streamDestroy == nullptr ||
      driver.streamQuery == nullptr || driver.memoryInfo == nullptr) {
    throw Error("libcuda has no streams", "install NVIDIA's GPU driver in the guest");
  }
}

}  // namespace

RankGpu::RankGpu(std::shared_ptr<const CudaDriver> driver, const GpuChoice& choice)
    : driver_(std::move(driver)), device_(findGpu(*driver_, choice)) {
  requireStreams(*driver_);
  driver_->require(driver_->primaryContextRetain(&context_, device_),
                   "cannot create a context on " + describe(choice));
  try {
    makeCurrent();
    driver_->require(driver_->streamCreate(&stream_, nonBlockingStream), "cannot create a stream");
    exchange_ = newMemory(exchangeBytes);
  } catch (...) {
    release();
    throw;
  }
}

RankGpu::~RankGpu() { release(); }

void RankGpu::release() {
  driver_->contextSetCurrent(context_);
  for (const CudaAddress memory : {source_, destination_, exchange_}) {
    if (memory != 0) {
      driver_->memoryFree(memory);
    }
  }
  if (stream_ != nullptr) {
    driver_->streamDestroy(stream_);
  }
  driver_->primaryContextRelease(device_);
}

void RankGpu::makeCurrent() const {
  driver_->require(driver_->contextSetCurrent(context_), "cannot enter the GPU's context");
}

std::uint64_t RankGpu::freeBytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  makeCurrent();
  driver_->require(driver_->memoryInfo(&free, &total), "cannot read the GPU's free memory");
  return free;
}

CudaAddress RankGpu::newMemory(std::uint64_t bytes) const {
  CudaAddress memory = 0;
  driver_->require(driver_->memoryAllocate(&memory, bytes),
                   "cannot allocate " + std::to_string(bytes) + " bytes of GPU memory");
  return memory;
}

void RankGpu::allocate(std::uint64_t bytes) {
  makeCurrent();
  source_ = newMemory(bytes);
  destination_ = newMemory(bytes);
}

void RankGpu::poison(std::uint64_t bytes) const {
  constexpr unsigned char noNumber = 0xff;
  makeCurrent();
  driver_->require(driver_->memorySet8(destination_, noNumber, bytes), "cannot set GPU memory");
  driver_->require(driver_->contextSynchronize(), "cannot wait for the GPU");
}

bool RankGpu::idle() const {
  const CudaStatus status = driver_->streamQuery(stream_);
  if (status == notReady) {
    return false;
  }
  driver_->require(status, "the GPU failed during a collective operation");
  return true;
}

void RankGpu::copyIn(CudaAddress to, const void* from, std::uint64_t bytes) const {
  makeCurrent();
  driver_->require(driver_->memoryCopyIn(to, from, bytes), "cannot copy to GPU memory");
  // The copy returns once pageable memory was read; streams that do not block do not wait for it.
  driver_->require(driver_->contextSynchronize(), "cannot wait for the GPU");
}

void RankGpu::copyOut(void* to, CudaAddress from, std::uint64_t bytes) const {
  makeCurrent();
  driver_->require(driver_->memoryCopyOut(to, from, bytes), "cannot copy from GPU memory");
}

}  // namespace vfpass::probe
