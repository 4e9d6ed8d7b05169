#include "gpu/gpu_selftest.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu_memory.hpp"
#include "gpu/gpu_speed.hpp"
#include "transfer/fault.hpp"
#include "transfer/verdict.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t seed = 0x5eed;
constexpr std::uint64_t guardBytes = 64;
constexpr std::byte guard{0xee};

Ring singleMessage(std::uint64_t bytes, std::uint64_t offset) { return {1, bytes, bytes, offset}; }

void flipBit(Memory& memory, std::uint64_t offset, unsigned bit) {
  std::byte byte{};
  memory.read(offset, std::span(&byte, 1));
  byte ^= std::byte{1} << bit;
  memory.write(offset, std::span(&byte, 1));
}

/// Flips one bit, returns whether the check finds exactly that byte, and restores the bit.
bool findsBit(Memory& memory, const Ring& ring, std::uint64_t offset, unsigned bit) {
  const MessageRange all{0, 0, ring.slots};
  flipBit(memory, ring.startOf(0) + offset, bit);
  const auto found = memory.compare(ring, seed, all);
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
  memory.poison(ring, seed, {0, 0, 1});
  const auto poisoned = memory.compare(ring, seed, {0, 0, 1});
  if (poisoned.size() != 1 || poisoned[0].difference.wrongBytes != bytes) {
    return "poison matches the pattern somewhere";
  }
  memory.fill(ring, seed, {0, 0, 1});
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
  for (const std::uint64_t offset : {std::uint64_t{0}, bytes / 2, bytes - 1}) {
    if (!findsBit(memory, ring, offset, static_cast<unsigned>(offset % 8))) {
      return "a flipped bit at offset " + std::to_string(offset) + " was not found";
    }
  }
  return memory.compare(ring, seed, {0, 0, 1}).empty() ? ""
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
  memory.fill(ring, seed, {0, 0, 1});
  if (!memory.compare(ring, seed, {0, 0, 1}).empty()) {
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

}  // namespace

Json gpuSelfTest(const GpuSelfTest& wanted) {
  const auto gpu = openGpu(wanted.gpu);
  int version = 0;
  gpu->driver().check(gpu->driver().driverVersion(&version), "cannot read the CUDA version");
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

}  // namespace vfpass::probe
