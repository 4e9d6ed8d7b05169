#include "drivers/memory_canary.hpp"

#include <sys/random.h>

#include <algorithm>
#include <exception>

#include "sysfs/kernel_write.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/driver_name.hpp"
#include "vfpass/base/pci_resource.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// On other processors a read that nobody answers can be an error of the system (SError on arm64);
// on x86 it returns ones.
#if defined(__x86_64__)
constexpr bool readsAreHarmless = true;
#else
constexpr bool readsAreHarmless = false;
#endif

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t smallestMemory = 64ULL << 20U;  // smaller BARs hold registers and doorbells
constexpr std::size_t patternLength = 1024;

bool isGpu(const Root& root, const PciAddress& function) {
  constexpr std::uint32_t displays = 3;
  return readClass(root, function) >> 16U == displays;
}

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
  if (!isGpu(root, function)) {
    canary.problem = "it is no GPU";
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
