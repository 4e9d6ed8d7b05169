#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace vfpass {

/// Parses a set of NUMA nodes or CPUs in the format of the kernel and libvirt: `0-3,8`; libvirt's
/// `^2` excludes a number again. nullopt for anything else, and for numbers above 1023. The empty
/// text is the empty set.
std::optional<std::set<unsigned>> parseNodeSet(std::string_view text);

/// The CPUs in a mask of the kernel: 32-bit words in hexadecimal, the highest first, with commas
/// between them. Numbers above 1023 are left out.
std::set<unsigned> cpusInMask(std::string_view mask);

/// Formats a set as libvirt does: `0-3,8`.
std::string formatNodeSet(const std::set<unsigned>& nodes);

}  // namespace vfpass
