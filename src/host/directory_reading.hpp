#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {

class Recording;

/// How far a path may lead: `none` is openat(2); in a captured tree the directory is taken for `/`
/// (`asRoot`), or no link is followed at all (`withoutLinks`).
enum class Containment { none, asRoot, withoutLinks };

/// A descriptor, or -1 with errno.
int openBelow(int directory, const std::string& path, int flags, Containment containment);

/// A captured tree may hold anything, also a FIFO whose opening would wait for a writer.
inline constexpr int textFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

bool isRegular(int descriptor);

// What Root and Folder have in common. Each takes an open descriptor, or none; `recording` may be
// null.
std::optional<std::string> readWhole(const FileDescriptor& file, std::size_t limit,
                                     Recording* recording);
std::vector<std::string> listNames(FileDescriptor directory, std::string_view prefix,
                                   Recording* recording);
std::optional<std::string> readLink(const FileDescriptor& link, Recording* recording);
std::optional<std::string> readLinkAt(int directory, const std::string& name);

/// Decimal, or hexadecimal after `0x`; white space around it is nothing.
std::optional<std::uint64_t> numberIn(const std::optional<std::string>& text);
std::optional<std::string> lastComponent(const std::optional<std::string>& path);

}  // namespace vfpass::host
