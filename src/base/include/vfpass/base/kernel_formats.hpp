#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace vfpass {

// Formats in which the kernel writes: its log, and sets of numbers.

/// The text of one line of /dev/kmsg, `priority,sequence,time,flags;text`
/// (Documentation/ABI/testing/dev-kmsg). Empty for what is not the kernel's own message: lines of
/// programs, which have another facility, properties of the record before, and anything else. Not
/// printable: devices choose parts of it.
std::string_view kernelText(std::string_view line);

/// Whether a message of the kernel explains no failure although it may have the words of one: it
/// repeats parameters (its command line, the environment of init, a module's unknown parameter), or
/// states that a module which is loaded is not signed, or that a card lacks a capability for dumps.
bool explainsNothing(std::string_view text);

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
