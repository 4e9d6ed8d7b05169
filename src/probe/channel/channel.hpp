#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "channel/transport.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::probe {

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

  [[nodiscard]] const Deadline& deadline() const { return deadline_; }

 private:
  std::unique_ptr<Transport> transport_;
  const Deadline& deadline_;
};

}  // namespace vfpass::probe
