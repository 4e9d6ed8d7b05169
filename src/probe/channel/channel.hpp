#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

/// Version of the probe's JSON output and of the protocol between two probes. Both sides must use
/// the same version.
constexpr int protocolVersion = 1;

/// The longest message that two probes send each other, in bytes.
constexpr std::size_t largestMessage = std::size_t{64} << 10U;

/// Parses a message from another process: at most `largestMessage` bytes, 8 levels deep. Throws
/// Error.
nlohmann::json parseMessage(std::string_view text);

/// The reader of a message or a part of one, whose errors blame the other side.
JsonReader readerOf(const nlohmann::json& message);

/// Throws Error if the deadline of the whole run has passed; `doing` names the current operation.
void requireTimeLeft(const Deadline& deadline, const std::string& doing);

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

/// Listens on `address` (numeric; empty for every address) and accepts one TCP connection.
FileDescriptor acceptOne(const std::string& address, const std::string& port,
                         const Deadline& deadline);

/// Connects by TCP. Retries until the other side listens or the deadline has passed.
FileDescriptor connectTo(const std::string& host, const std::string& port,
                         const Deadline& deadline);

/// Over files in a directory, for guests that can only exchange files, copied through the guest
/// agent: writes line N to `out.N` and waits for the other side's line N in `in.N`, counted from 1.
/// Files get their names when they are complete. An empty `in.N` means that the other side has
/// closed; this side leaves an empty `out.N` when it closes. Throws Error if the directory does not
/// exist or already has output.
std::unique_ptr<Transport> folderTransport(const std::filesystem::path& folder);

/// The control channel between two probes. Messages are JSON objects.
class Channel {
 public:
  Channel(std::unique_ptr<Transport> transport, const Deadline& deadline)
      : transport_(std::move(transport)), deadline_(deadline) {}

  /// Throws Error if the other side is gone or the deadline has passed.
  void send(const nlohmann::json& message);

  /// Returns the next message, which must be of this `type`. Throws Error for another type (with
  /// the other side's error if it is `failed`), if the other side closes, and if the deadline has
  /// passed.
  nlohmann::json receive(const std::string& type);

  /// Returns the next message of any type; `end` if the other side has closed.
  nlohmann::json receiveAny();

  /// Tells the other side why this one gives up. Does nothing if the other side is gone.
  void sendFailure(const Error& error);

  [[nodiscard]] const Deadline& deadline() const { return deadline_; }

 private:
  std::unique_ptr<Transport> transport_;
  const Deadline& deadline_;
};

/// Throws the other side's error, which a message of type `failed` has.
[[noreturn]] void throwFailure(const nlohmann::json& message);

}  // namespace vfpass::probe
