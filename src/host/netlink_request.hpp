#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vfpass/vf_settings.hpp"

namespace vfpass::host {

/// What to set on one VF; only the members that are there are sent.
struct VfRequest {
  unsigned index = 0;
  VfSettings settings;

  auto operator<=>(const VfRequest&) const = default;
};

/// Most bytes of one request. The kernel takes nested lists up to 64 KiB.
inline constexpr std::size_t requestLimit = 32768;

/// RTM_GETLINK for one interface with its VFs, without their statistics: those only make the
/// reply's VF list, whose length has 16 bits, wrap sooner.
std::string linkQuery(int interfaceIndex, std::uint32_t sequence);
/// The same with the statistics, for when they are what is asked for.
std::string trafficQuery(int interfaceIndex, std::uint32_t sequence);

/// RTM_SETLINK messages that set all of this, as few as `limit` allows. Never asks for the VF list.
std::vector<std::string> linkChanges(int interfaceIndex, std::uint32_t sequence,
                                     const std::vector<VfRequest>& requests,
                                     std::size_t limit = requestLimit);

}  // namespace vfpass::host
