#include "drivers/memory_canary.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>

#include "helper/guarded_child.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t page = 4096;
constexpr off_t commandRegister = 4;
constexpr std::uint16_t memoryDecoding = 2;
constexpr std::uint16_t noResponse = 0xffff;
// Of a child that was killed. One that hangs in the kernel does not end.
constexpr std::chrono::milliseconds timeToEnd{200};

using TimePoint = std::chrono::steady_clock::time_point;

// These run in the guarded child: they must not allocate. By `end` somebody else may have the
// device, so nothing is written to it any more.

bool isOver(TimePoint end) { return std::chrono::steady_clock::now() >= end; }

// Words of 32 bits, which every device accepts.
bool accessPage(volatile std::uint32_t* memory, const std::uint32_t* pattern, std::size_t words,
                bool write) {
  for (std::size_t at = 0; write && at < words; ++at) {
    memory[at] = pattern[at];
  }
  bool same = true;
  for (std::size_t at = 0; at < words; ++at) {
    same = memory[at] == pattern[at] && same;
  }
  return same;
}

PatternFound accessPlaces(int file, const MemoryPlaces& places, const std::string& pattern,
                          bool write, TimePoint end) {
  std::size_t same = 0;
  for (const std::uint64_t offset : places.offsets) {
    void* mapped =
        ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED || isOver(end)) {
      return PatternFound::unreachable;
    }
    alignas(std::uint32_t) char words[page];
    const std::size_t length = std::min(pattern.size(), page) / sizeof(std::uint32_t);
    std::memcpy(words, pattern.data(), length * sizeof(std::uint32_t));
    same += accessPage(static_cast<volatile std::uint32_t*>(mapped),
                       reinterpret_cast<const std::uint32_t*>(words), length, write)
                ? 1
                : 0;
    ::munmap(mapped, page);
  }
  return same == 0                       ? PatternFound::nowhere
         : same == places.offsets.size() ? PatternFound::everywhere
                                         : PatternFound::somewhere;
}

PatternFound accessDecoded(int config, int file, const MemoryPlaces& places,
                           const std::string& pattern, bool write, TimePoint end) {
  std::uint16_t command = 0;
  if (::pread(config, &command, sizeof command, commandRegister) != sizeof command ||
      command == noResponse || isOver(end)) {
    return PatternFound::unreachable;
  }
  const auto decoding = static_cast<std::uint16_t>(command | memoryDecoding);
  if (decoding != command &&
      ::pwrite(config, &decoding, sizeof decoding, commandRegister) != sizeof decoding) {
    return PatternFound::unreachable;
  }
  const PatternFound found = accessPlaces(file, places, pattern, write, end);
  const bool restored =
      decoding == command || (!isOver(end) && ::pwrite(config, &command, sizeof command,
                                                       commandRegister) == sizeof command);
  return restored ? found : PatternFound::unreachable;
}

}  // namespace

// A mapping of a BAR is refused while kernel lockdown is on (pci_mmap_resource,
// drivers/pci/pci-sysfs.c), and while a driver has reserved the BAR (CONFIG_IO_STRICT_DEVMEM).
PatternFound GuardedMemory::access(const MemoryPlaces& places, const std::string& pattern,
                                   bool write) {
  const std::string folder = root_ / functionPath(places.function);
  const std::string configPath = folder + "/config";
  const std::string resourcePath = folder + "/resource" + std::to_string(places.bar);
  const TimePoint end = std::chrono::steady_clock::now() + timeout_;
  const auto reply = runGuarded(timeout_, -1, [&](int pipe) {
    const int config = ::open(configPath.c_str(), O_RDWR | O_CLOEXEC);
    const int file = ::open(resourcePath.c_str(), O_RDWR | O_CLOEXEC);
    const PatternFound found = config < 0 || file < 0
                                   ? PatternFound::unreachable
                                   : accessDecoded(config, file, places, pattern, write, end);
    const auto byte = static_cast<char>(found);
    writeAll(pipe, &byte, 1);
  });
  if (!reply.finished) {
    endGuarded(reply.child, timeToEnd);
  }
  return reply.finished && reply.bytes.size() == 1 ? static_cast<PatternFound>(reply.bytes[0])
                                                   : PatternFound::unreachable;
}

namespace {

// On other processors a read that nobody answers can be an error of the system (SError on arm64);
// on x86 it returns ones.
#if defined(__x86_64__)
constexpr bool readsAreHarmless = true;
#else
constexpr bool readsAreHarmless = false;
#endif

constexpr std::uint64_t smallestMemory = 64ULL << 20U;  // smaller BARs hold registers and doorbells
constexpr std::size_t patternLength = 1024;

// The largest 64-bit prefetchable BAR; nullopt: none has an address and the size of a memory.
std::optional<std::pair<unsigned, std::uint64_t>> memoryBar(const Root& root,
                                                            const PciAddress& function) {
  const auto resources =
      readPciResources(root.readText(functionPath(function) + "/resource").value_or(""));
  constexpr std::uint64_t wanted = memoryResource | prefetchableResource | wideResource;
  std::optional<std::pair<unsigned, std::uint64_t>> found;
  for (unsigned bar = 0; bar < std::min(pciBars, resources.size()); ++bar) {
    const PciResource& each = resources[bar];
    const bool fits = (each.flags & wanted) == wanted && (each.flags & unsetResource) == 0 &&
                      each.start != 0 && each.bytes >= smallestMemory;
    if (fits && (!found || each.bytes > found->second)) {
      found = {bar, each.bytes};
    }
  }
  return found;
}

// Whoever has the function would lose what the pattern overwrites.
std::string whyNotFree(const Root& root, const PciAddress& function) {
  Device device;
  device.address = function;
  device.driver = readDriver(root, function);
  if (device.driver.empty()) {
    return {};
  }
  if (device.driver != "vfio-pci") {
    return "driver " + printable(device.driver) + " has it";
  }
  readVfioUse(root, {&device});
  return device.vfioInUse ? "a process has it" : "";
}

/// Keeps a function awake: in D3 its memory does not answer, and vfio-pci lets it sleep.
class Awake {
 public:
  Awake(const Root& root, KernelWriter& writer, const PciAddress& function)
      : writer_(writer), function_(function), path_(functionPath(function) + "/power/control") {
    const std::string before = root.readText(path_).value_or("");
    if (before == "auto") {
      writer_.write(path_, "on", function_, deadlines::serial);
      wasAutomatic_ = true;
    }
  }
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;
  ~Awake() {
    try {
      if (wasAutomatic_) {
        writer_.write(path_, "auto", function_, deadlines::serial);
      }
    } catch (const std::exception&) {  // also no memory: an exception would end the process here
    }
  }

 private:
  KernelWriter& writer_;
  PciAddress function_;
  std::string path_;
  bool wasAutomatic_ = false;
};

// After the function has been woken up: whether the kernel says that its memory answers.
bool isAwake(const Root& root, const PciAddress& function) {
  return root.readText(functionPath(function) + "/power_state") == "D0";
}

// Four pages in the middle half: firmware keeps its own data at the ends of a GPU's memory.
std::vector<std::uint64_t> chooseOffsets(std::uint64_t bytes) {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t part = 2; part < 6; ++part) {
    offsets.push_back(bytes / 8 * part / page * page);
  }
  return offsets;
}

std::string randomPattern() {
  std::string pattern(patternLength, '\0');
  return ::getrandom(pattern.data(), pattern.size(), 0) == static_cast<ssize_t>(pattern.size())
             ? pattern
             : std::string();
}

std::string problemOf(PatternFound found) {
  return found == PatternFound::everywhere    ? ""
         : found == PatternFound::unreachable ? "its memory cannot be mapped"
                                              : "its memory does not keep what is written to it";
}

void plant(const Root& root, KernelWriter& writer, DeviceMemory& memory, Canary& canary) {
  const PciAddress& function = canary.places.function;
  const auto bar = memoryBar(root, function);
  canary.problem = whyNotFree(root, function);
  if (!canary.problem.empty()) {
    return;
  }
  if (!bar) {
    canary.problem = "it has no BAR for its memory";
    return;
  }
  canary.places.bar = bar->first;
  canary.places.offsets = chooseOffsets(bar->second);
  canary.pattern = randomPattern();
  const Awake awake(root, writer, function);
  if (!isAwake(root, function) || canary.pattern.empty()) {
    canary.problem = "it does not wake up";
    return;
  }
  canary.problem = problemOf(memory.access(canary.places, canary.pattern, true));
}

}  // namespace

Canary plantCanary(const Root& root, KernelWriter& writer, DeviceMemory& memory,
                   const PciAddress& function, MemoryChecks checks) {
  Canary canary;
  canary.places.function = function;
  if (!isDisplayOrAccelerator(readClass(root, function))) {
    canary.problem = "it is not a GPU";
  } else if (checks == MemoryChecks::off) {
    canary.problem = "gpu-memory-check in host.yaml is false or not applied";
  } else if (!readsAreHarmless) {
    canary.problem = "only on x86";
  } else {
    try {
      plant(root, writer, memory, canary);
    } catch (const Error& error) {
      canary.problem = error.what();
    }
  }
  return canary;
}

MemoryCheck findCanary(const Root& root, KernelWriter& writer, DeviceMemory& memory,
                       const Canary& canary) {
  using Result = MemoryCheck::Result;
  if (!canary.problem.empty()) {
    return {Result::notChecked, canary.problem};
  }
  try {
    const Awake awake(root, writer, canary.places.function);
    const bool isOn = isAwake(root, canary.places.function);
    const auto found =
        isOn ? memory.access(canary.places, canary.pattern, false) : PatternFound::unreachable;
    if (found == PatternFound::everywhere || found == PatternFound::somewhere) {
      return {Result::survived, ""};
    }
    // Memory that does not answer reads as ones, which is not the pattern, either.
    const bool answers =
        found == PatternFound::nowhere &&
        memory.access(canary.places, randomPattern(), true) == PatternFound::everywhere;
    return answers ? MemoryCheck{Result::gone, ""}
                   : MemoryCheck{Result::notChecked, "its memory does not answer after the reset"};
  } catch (const Error& error) {
    return {Result::notChecked, error.what()};
  }
}

}  // namespace vfpass::host
