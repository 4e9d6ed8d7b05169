#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "vfpass/settings/propose_settings.hpp"

namespace vfpass::settings {

inline constexpr std::uint64_t kibibyte = 1ULL << 10U;
inline constexpr std::uint64_t mebibyte = 1ULL << 20U;
inline constexpr std::uint64_t gibibyte = 1ULL << 30U;
inline constexpr std::uint64_t tebibyte = 1ULL << 40U;

/// The device's host function; nullptr if the host has none at that address.
const TopologyFunction* functionOf(const Input& input, const Device& device);

/// Memory BARs that the device has in the guest.
std::vector<MemoryBar> barsOf(const Input& input, const Device& device);

bool isGpu(const Input& input, const Device& device);
bool hasGpus(const Input& input);

/// In the largest binary unit that divides it, such as `256 GiB`; `0 bytes` for 0.
std::string amount(std::uint64_t bytes);

/// `<name unit='KiB'>N</name>`, as libvirt formats amounts.
std::string kibibyteElement(const std::string& name, std::uint64_t bytes);

}  // namespace vfpass::settings
