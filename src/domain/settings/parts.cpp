#include "parts.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace vfpass::settings {

const Device* functionOf(const Input& input, const GuestDevice& device) {
  return findFunction(input.topology, device.function);
}

std::vector<MemoryBar> barsOf(const Input& input, const GuestDevice& device) {
  const auto& all = device.vf ? input.capacity.vfBars : input.capacity.bars;
  const auto found = all.find(device.function);
  return found == all.end() ? std::vector<MemoryBar>() : found->second;
}

bool isGpu(const Input& input, const GuestDevice& device) {
  const Device* function = functionOf(input, device);
  return !device.vf && function != nullptr && function->role == FunctionRole::gpu;
}

bool hasGpus(const Input& input) {
  return std::ranges::any_of(input.devices,
                             [&input](const GuestDevice& device) { return isGpu(input, device); });
}

std::string amount(std::uint64_t bytes) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 4> units{
      {{tebibyte, " TiB"}, {gibibyte, " GiB"}, {mebibyte, " MiB"}, {kibibyte, " KiB"}}};
  for (const auto& [unit, name] : units) {
    if (bytes >= unit && bytes % unit == 0) {
      return std::to_string(bytes / unit) + name;
    }
  }
  return std::to_string(bytes) + " bytes";
}

std::string kibibyteElement(const std::string& name, std::uint64_t bytes) {
  return "<" + name + " unit='KiB'>" + std::to_string(bytes / kibibyte) + "</" + name + ">";
}

}  // namespace vfpass::settings
