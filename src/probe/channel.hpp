#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::probe {

/// What two probes say to each other besides RDMA: one JSON object a line, over a stream socket.
class Channel {
 public:
  Channel(FileDescriptor socket, const Deadline& deadline)
      : socket_(std::move(socket)), deadline_(deadline) {}

  /// Throws Error when the other side is gone or the deadline is over.
  void send(const nlohmann::json& message);

  /// The next message, which must be of this `type`. Throws Error for another one, with the other
  /// side's own words when it is `failed`, when it closes, and when the deadline is over.
  nlohmann::json receive(const std::string& type);

  /// The next message of any type; of type `end` when the other side closed.
  nlohmann::json receiveAny();

  [[nodiscard]] const Deadline& deadline() const { return deadline_; }

 private:
  [[nodiscard]] std::string line();
  void waitFor(short events, const char* doing);

  FileDescriptor socket_;
  const Deadline& deadline_;
  std::string read_;  ///< what came after the last line
};

/// Listens on `address` (numeric, empty: every address) and takes one connection.
FileDescriptor acceptOne(const std::string& address, const std::string& port,
                         const Deadline& deadline);

/// Tries until the other side listens or the deadline is over.
FileDescriptor connectTo(const std::string& host, const std::string& port,
                         const Deadline& deadline);

}  // namespace vfpass::probe
