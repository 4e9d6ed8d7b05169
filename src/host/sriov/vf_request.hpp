#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vfpass/vf_settings.hpp"

namespace vfpass::host {

/// Settings to apply to one VF; only members with a value are sent.
struct VfRequest {
  unsigned index = 0;
  VfSettings settings;

  auto operator<=>(const VfRequest&) const = default;
};

/// Maximum length of one request in bytes. The kernel accepts nested lists up to 64 KiB.
inline constexpr std::size_t requestLimit = 32768;

/// RTM_GETLINK for one interface with its VFs, without their statistics, which would make the VF
/// list with its 16-bit length wrap sooner.
std::string linkQuery(int interfaceIndex, std::uint32_t sequence);
/// The same with the statistics.
std::string trafficQuery(int interfaceIndex, std::uint32_t sequence);

/// RTM_SETLINK messages that apply these settings, as few as `limit` allows. They do not request
/// the VF list.
std::vector<std::string> linkChanges(int interfaceIndex, std::uint32_t sequence,
                                     const std::vector<VfRequest>& requests,
                                     std::size_t limit = requestLimit);

}  // namespace vfpass::host
