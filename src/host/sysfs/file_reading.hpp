#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

class Recording;

/// Restricts path resolution: `none` is openat(2); for a captured tree the directory is treated as
/// `/` (`asRoot`), or no link is followed (`withoutLinks`).
enum class Containment { none, asRoot, withoutLinks };

/// A descriptor, or -1 with errno. Throws Error if the process or the host has no descriptor left,
/// which says nothing about the file.
int openBelow(int directory, const std::string& path, int flags, Containment containment);

/// O_NONBLOCK, because a captured tree may contain a FIFO, on which open would wait for a writer.
inline constexpr int textFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

bool isRegular(int descriptor);

/// Calls `visit` for each name in the directory, without `.` and `..`, until it returns false. In
/// the kernel's order, and however many there are.
void visitNames(FileDescriptor directory, const std::function<bool(const char* name)>& visit);

// Shared by Root and Folder. The descriptor may be closed, and `recording` may be null.
std::optional<std::string> readWhole(const FileDescriptor& file, std::size_t limit,
                                     Recording* recording);
std::vector<std::string> listNames(FileDescriptor directory, std::string_view prefix,
                                   Recording* recording);
std::optional<std::string> readLink(const FileDescriptor& link, Recording* recording);
std::optional<std::string> readLinkAt(int directory, const std::string& name);

/// Decimal, or hexadecimal after `0x`; surrounding white space is ignored.
std::optional<std::uint64_t> numberIn(const std::optional<std::string>& text);
std::optional<std::string> lastComponent(const std::optional<std::string>& path);

enum class LinesRead {
  all,
  none,  ///< the file cannot be read
  some,  ///< `visit` returned false, or a line is longer than any line of the kernel
};

/// Calls `visit` for each line of a file of any length, without its newline, until it returns
/// false.
LinesRead eachLine(const Root& root, const std::string& path,
                   const std::function<bool(std::string_view line)>& visit);

}  // namespace vfpass::host
