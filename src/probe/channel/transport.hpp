#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// Carries lines between two probes. Lines hold no newline and are at most largestMessage long.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Throws Error if the other side is gone or the deadline has passed.
  virtual void send(const std::string& line, const Deadline& deadline) = 0;
  /// Returns the next line; nullopt if the other side has closed. Throws Error if the deadline has
  /// passed or a line is too long.
  virtual std::optional<std::string> receive(const Deadline& deadline) = 0;
};

/// Over a connected stream socket.
std::unique_ptr<Transport> socketTransport(FileDescriptor socket);

/// Over files in a directory, for guests that can only exchange files, copied through the guest
/// agent: writes line N to `out.N` and waits for the other side's line N in `in.N`, counted from 1.
/// Files get their names when they are complete. An empty `in.N` means that the other side has
/// closed; this side leaves an empty `out.N` when it closes. Throws Error if the directory does not
/// exist or already has output.
std::unique_ptr<Transport> folderTransport(const std::filesystem::path& folder);

}  // namespace vfpass::probe
