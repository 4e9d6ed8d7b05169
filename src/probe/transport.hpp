#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// Carries lines between two probes. Lines hold no newline and are at most largestMessage long.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Throws Error when the other side is gone or the deadline is over.
  virtual void send(const std::string& line, const Deadline& deadline) = 0;
  /// The next line; nullopt when the other side closed. Throws Error when the deadline is over, or
  /// for a line without end.
  virtual std::optional<std::string> receive(const Deadline& deadline) = 0;
};

/// Over a connected stream socket.
std::unique_ptr<Transport> socketTransport(FileDescriptor socket);

/// Over files in a folder, for guests that reach each other only through somebody who copies files
/// (the guest agent): line N goes out as `out.N`, the other side's line N is awaited as `in.N`,
/// counted from
/// 1. Files appear under their names when they are whole. An empty `in.N` says that the other side
/// closed, and one is left as `out.N` at the end. Throws Error when the folder is not there, or
/// something went out of it already.
std::unique_ptr<Transport> folderTransport(const std::filesystem::path& folder);

}  // namespace vfpass::probe
