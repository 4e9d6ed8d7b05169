#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "drivers/memory_canary.hpp"
#include "helper/guarded_child.hpp"
#include "sysfs/pci_function.hpp"

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

}  // namespace vfpass::host
