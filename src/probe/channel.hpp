#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "deadline.hpp"
#include "transport.hpp"

namespace vfpass::probe {

/// What two probes say to each other besides RDMA: JSON objects.
class Channel {
 public:
  Channel(std::unique_ptr<Transport> transport, const Deadline& deadline)
      : transport_(std::move(transport)), deadline_(deadline) {}

  /// Throws Error when the other side is gone or the deadline is over.
  void send(const nlohmann::json& message);

  /// The next message, which must be of this `type`. Throws Error for another one, with the other
  /// side's own words when it is `failed`, when it closes, and when the deadline is over.
  nlohmann::json receive(const std::string& type);

  /// The next message of any type; of type `end` when the other side closed.
  nlohmann::json receiveAny();

  [[nodiscard]] const Deadline& deadline() const { return deadline_; }

 private:
  std::unique_ptr<Transport> transport_;
  const Deadline& deadline_;
};

}  // namespace vfpass::probe
