#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

class KernelWriter;

/// Places in a BAR of a function.
struct MemoryPlaces {
  PciAddress function;
  unsigned bar = 0;
  std::vector<std::uint64_t> offsets;  ///< of whole pages
};

/// What an access to them found.
enum class PatternFound {
  everywhere,
  somewhere,
  nowhere,
  unreachable  ///< the file cannot be mapped, or the function does not respond
};

/// Access to a function's memory; tests substitute it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;

  /// Writes the pattern, at most a page, to all places first if `write`, and compares what they
  /// have. Enables memory decoding meanwhile (command register of configuration space).
  virtual PatternFound access(const MemoryPlaces& places, const std::string& pattern,
                              bool write) = 0;
};

/// Maps `resourceN` of the running system in a guarded child: an access waits for as long as the
/// device does. A child that is late is killed and writes nothing more: somebody else may have the
/// device by then.
class GuardedMemory final : public DeviceMemory {
 public:
  explicit GuardedMemory(std::filesystem::path root = "/",
                         std::chrono::milliseconds timeout = deadlines::serial)
      : root_(std::move(root)), timeout_(timeout) {}

  PatternFound access(const MemoryPlaces& places, const std::string& pattern, bool write) override;

 private:
  std::filesystem::path root_;
  std::chrono::milliseconds timeout_;
};

/// A pattern in a GPU's memory, or why there is none.
struct Canary {
  MemoryPlaces places;
  std::string pattern;
  std::string problem;  ///< empty: it has been written, and read back
};

/// Writes random bytes to the largest memory BAR of a GPU that no guest and no driver of the host
/// has, and reads them back. Wakes the function up for that. Never throws Error: a problem is a
/// reason not to check, as is MemoryChecks::off, with which nothing is opened or written.
Canary plantCanary(const Root& root, KernelWriter& writer, DeviceMemory& memory,
                   const PciAddress& function, MemoryChecks checks);

/// The longest that planting a pattern or looking for it takes: two accesses and two writes of
/// power/control, each of deadlines::serial, and the ends of children that hang.
inline constexpr std::chrono::milliseconds canaryTime =
    4 * deadlines::serial + std::chrono::milliseconds(500);

/// Looks for it after the reset.
MemoryCheck findCanary(const Root& root, KernelWriter& writer, DeviceMemory& memory,
                       const Canary& canary);

}  // namespace vfpass::host
