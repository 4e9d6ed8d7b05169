#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace vfpass {

/// Reads a set of NUMA nodes or CPUs as the kernel and libvirt write it: `0-3,8`, libvirt's `^2`
/// takes one out again. nullopt for anything else, and for numbers above 1023. The empty text is
/// the empty set.
std::optional<std::set<unsigned>> parseNodeSet(std::string_view text);

/// The inverse, as libvirt formats a set: `0-3,8`.
std::string formatNodeSet(const std::set<unsigned>& nodes);

}  // namespace vfpass
