#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda_driver.hpp"
#include "gpu/gpu_memory.hpp"
#include "program/probe_commands.hpp"
#include "transfer/message_check.hpp"
#include "transfer/pattern_formula.hpp"
#include "transfer/timing.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// Parameters of the self-test.
struct GpuSelfTest {
  GpuChoice gpu = 0;
  std::uint64_t bytes = std::uint64_t{8} << 30U;  ///< of the large buffer
  int rounds = 10;                                ///< timed rounds
};

using Json = nlohmann::json;

constexpr std::uint64_t seed = 0x5eed;
constexpr std::uint64_t guardBytes = 64;
constexpr std::byte guard{0xee};
constexpr MessageRange firstSlot{0, 0, 1};

Ring singleMessage(std::uint64_t bytes, std::uint64_t offset) { return {1, bytes, bytes, offset}; }

/// Flips one bit, returns whether the check finds exactly that byte, and restores the bit.
bool findsBit(Memory& memory, const Ring& ring, std::uint64_t offset, unsigned bit) {
  flipBit(memory, ring.startOf(0) + offset, bit);
  const auto found = memory.compare(ring, seed, firstSlot);
  flipBit(memory, ring.startOf(0) + offset, bit);
  return found.size() == 1 && found[0].difference.offset == offset &&
         found[0].difference.wrongBytes == 1;
}

/// Fills, poisons and checks one size at one alignment and compares with the host's pattern.
/// Returns the first problem, or an empty string.
std::string alignmentProblem(GpuMemory& memory, std::uint64_t bytes, std::uint64_t alignment) {
  const Ring ring = singleMessage(bytes, guardBytes + alignment);
  const std::uint64_t area = ring.startOf(0) + bytes + guardBytes;
  std::vector<std::byte> copy(area, guard);
  memory.write(0, copy);
  // Poison has to differ from the pattern in every byte.
  memory.poison(ring, seed, firstSlot);
  const auto poisoned = memory.compare(ring, seed, firstSlot);
  if (poisoned.size() != 1 || poisoned[0].difference.wrongBytes != bytes) {
    return "poison matches the pattern somewhere";
  }
  // The pattern has to be the host's, and nothing around the message may change.
  memory.fill(ring, seed, firstSlot);
  memory.read(0, copy);
  const auto isGuard = [](std::byte byte) { return byte == guard; };
  const auto end = copy.begin() + static_cast<std::ptrdiff_t>(area - guardBytes);
  if (!std::all_of(copy.begin(), copy.begin() + static_cast<std::ptrdiff_t>(ring.startOf(0)),
                   isGuard) ||
      !std::all_of(end, copy.end(), isGuard)) {
    return "bytes outside the message were written";
  }
  if (comparePattern(std::span(copy).subspan(ring.startOf(0), bytes), {seed, 0})) {
    return "the pattern differs from the host's";
  }
  // The check has to find a single wrong bit, and to accept the message without it.
  for (const std::uint64_t offset : {std::uint64_t{0}, bytes / 2, bytes - 1}) {
    if (!findsBit(memory, ring, offset, static_cast<unsigned>(offset % 8))) {
      return "a flipped bit at offset " + std::to_string(offset) + " was not found";
    }
  }
  return memory.compare(ring, seed, firstSlot).empty() ? ""
                                                       : "correct bytes were reported as wrong";
}

Json check(const std::string& name, const std::string& problem) {
  return {{"name", name}, {"passed", problem.empty()}, {"detail", problem}};
}

Json checkAlignments(GpuMemory& memory) {
  constexpr std::array<std::uint64_t, 12> sizes{2,  3,    7,    8,     15,    16,
                                                17, 4095, 4096, 16401, 65536, 1048583};
  for (const std::uint64_t bytes : sizes) {
    for (std::uint64_t alignment = 0; alignment < 16; ++alignment) {
      const std::string problem = alignmentProblem(memory, bytes, alignment);
      if (!problem.empty()) {
        return check("alignments", std::to_string(bytes) + " bytes at alignment " +
                                       std::to_string(alignment) + ": " + problem);
      }
    }
  }
  return check("alignments", "");
}

Json checkLargeOffsets(GpuMemory& memory, std::uint64_t bytes) {
  constexpr std::uint64_t fourGiB = std::uint64_t{4} << 30U;
  const Ring ring = singleMessage(bytes - 3, 3);
  memory.fill(ring, seed, firstSlot);
  if (!memory.compare(ring, seed, firstSlot).empty()) {
    return check("large_offsets", "correct bytes were reported as wrong");
  }
  for (const std::uint64_t offset :
       {std::uint64_t{1}, bytes / 2 + 5, fourGiB - 1, fourGiB, fourGiB + 12345, bytes - 4}) {
    if (offset < ring.messageBytes && !findsBit(memory, ring, offset, 7)) {
      return check("large_offsets",
                   "a flipped bit at offset " + std::to_string(offset) + " was not found");
    }
  }
  return check("large_offsets", "");
}

/// The faults that the source's owner can inject, and the damage that the check must report.
Json checkSlots(GpuMemory& memory) {
  const Ring ring = makeRing(4099, 1000, memory.bytes(), 5);
  const MessageRange all{0, ring.slots, ring.slots};
  const std::array<std::pair<Fault, Damage>, 2> cases{
      {{Fault::flip, Damage::flipped}, {Fault::stale, Damage::stale}}};
  for (const auto& [fault, damage] : cases) {
    const Injection injection{fault, ring.slots + 777};
    memory.fill(ring, seed, all);
    corruptSource(memory, ring, seed, all, injection);
    const CheckResult result = checkMessages(memory, ring, seed, all);
    if (result.wrongMessages != 1 || result.corruptions.at(0).damage != damage ||
        result.corruptions.at(0).message != injection.message) {
      return check("slots", "fault " + faultName(fault) + " was classified wrongly");
    }
  }
  return check("slots", "");
}

Json dmaBuf(const GpuMemory& memory) {
  try {
    const FileDescriptor descriptor = memory.buffer().exportDmaBuf();
    return {{"exported", true}, {"detail", ""}};
  } catch (const Error& error) {
    return {{"exported", false}, {"detail", error.what()}};
  }
}

/// Measures time between two events on the GPU.
class GpuTimer {
 public:
  explicit GpuTimer(const CudaDriver& driver) : driver_(driver) {
    driver_.require(driver_.eventCreate(&begin_, 0), "cannot create an event");
    driver_.require(driver_.eventCreate(&end_, 0), "cannot create an event");
  }
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;
  ~GpuTimer() {
    driver_.eventDestroy(begin_);
    driver_.eventDestroy(end_);
  }

  /// Seconds that the GPU takes for the work that `work` starts.
  double seconds(const std::function<void()>& work) {
    driver_.require(driver_.eventRecord(begin_, nullptr), "cannot record an event");
    work();
    driver_.require(driver_.eventRecord(end_, nullptr), "cannot record an event");
    driver_.require(driver_.eventSynchronize(end_), "cannot wait for the GPU");
    float milliseconds = 0;
    driver_.require(driver_.eventElapsed(&milliseconds, begin_, end_), "cannot read an event");
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  const CudaDriver& driver_;
  CudaEvent begin_ = nullptr;
  CudaEvent end_ = nullptr;
};

struct Series {
  const char* name;
  std::function<void()> work;
  std::vector<double> rates;  ///< bytes per second
};

/// `{memset: {...}, fill: {...}, check: {...}}` in 10^9 bytes per second.
Json runRounds(GpuTimer& timer, std::vector<Series>& series, std::uint64_t bytes, int rounds) {
  for (int round = -1; round < rounds; ++round) {
    for (Series& one : series) {
      const double seconds = timer.seconds(one.work);
      if (round >= 0) {  // the first one warms up
        one.rates.push_back(static_cast<double>(bytes) / seconds);
      }
    }
  }
  Json result;
  for (const Series& one : series) {
    result[one.name] = toJson(summarize(one.rates), 1e9);
  }
  return result;
}

double median(const Series& series) { return summarize(series.rates).median; }

/// Measures the kernels against cuMemsetD32 of the same bytes, in interleaved rounds of one run.
/// Times are taken on the GPU, between two events; bandwidths count each byte once.
Json measureKernels(const std::shared_ptr<const Gpu>& gpu, std::uint64_t bytes, int rounds) {
  const GpuBuffer buffer(gpu, bytes);
  const GpuBuffer results(gpu, 2 * sizeof(Word));
  const CudaDriver& driver = gpu->driver();
  const GpuMessages whole{buffer.address(), bytes, bytes};
  const GpuMessages shifted{buffer.address() + 1, bytes, bytes - 1};
  // Each check follows its matching fill; otherwise it would report every byte.
  std::vector<Series> series{
      {"memset",
       [&] {
         driver.require(driver.memorySet32(whole.base, 0, bytes / 4), "cannot set GPU memory");
       },
       {}},
      {"fill", [&] { gpu->startFill(whole, seed, 0); }, {}},
      {"check", [&] { gpu->startCheck(whole, seed, results.address()); }, {}},
      {"fill_unaligned", [&] { gpu->startFill(shifted, seed, 0); }, {}},
      {"check_unaligned", [&] { gpu->startCheck(shifted, seed, results.address()); }, {}},
  };
  GpuTimer timer(driver);
  Json result = runRounds(timer, series, bytes, rounds);
  result["bytes"] = bytes;
  result["rounds"] = rounds;
  result["unit"] = "10^9 bytes per second, each byte counted once";
  result["check_over_memset"] = median(series[2]) / median(series[0]);
  result["fill_over_memset"] = median(series[1]) / median(series[0]);
  result["check_unaligned_over_memset"] = median(series[4]) / median(series[0]);
  return result;
}

/// Tests the GPU's half without RDMA: pattern and check at every alignment, flipped bits, also
/// beyond 4 GiB, DMA-BUF export, and bandwidth. `passed` in the result covers everything except the
/// export and the bandwidths, which are only reported. Throws Error if there is no GPU.
Json gpuSelfTest(const GpuSelfTest& wanted) {
  const auto gpu = openGpu(wanted.gpu);
  int version = 0;
  gpu->driver().require(gpu->driver().driverVersion(&version), "cannot read the CUDA version");
  Json result{{"gpu", gpu->name()}, {"pci", gpu->pciAddress()}, {"cuda_version", version}};
  {
    GpuMemory memory(gpu, wanted.bytes, 1000);
    result["checks"] = {checkAlignments(memory), checkSlots(memory),
                        checkLargeOffsets(memory, wanted.bytes)};
    result["dma_buf"] = dmaBuf(memory);
  }
  result["speed"] = measureKernels(gpu, wanted.bytes, wanted.rounds);
  result["passed"] = std::ranges::all_of(
      result["checks"], [](const Json& one) { return one.at("passed").get<bool>(); });
  return result;
}

}  // namespace

void addGpuSelfTest(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "gpu-selftest", "Test fill, check, DMA-BUF export and bandwidth of one GPU, without RDMA");
  auto wanted = std::make_shared<GpuSelfTest>();
  addGpuOption(*command, wanted->gpu);
  command->add_option("--bytes", wanted->bytes, "Size of the large buffer")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command->add_option("--rounds", wanted->rounds, "Number of timed rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->callback(
      [&chosen, wanted] { chosen = [wanted] { return writeVerdict(gpuSelfTest(*wanted)); }; });
}

}  // namespace vfpass::probe
