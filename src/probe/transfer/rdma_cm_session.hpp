#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rdma/rdma_cm_connection.hpp"
#include "transfer/side.hpp"

namespace vfpass::probe {

/// This side's addresses for rdma_cm: `--ip-address`, or those of the port's interfaces. Throws
/// Error if there is none.
std::vector<IpAddress> ownAddresses(const Resources& resources);

/// The initiator's offer, in the message `begin`, and its reader. The reader throws Error.
nlohmann::json toJson(const std::vector<IpAddress>& addresses);
std::vector<IpAddress> addressesFromJson(const JsonReader& list);

/// The initiator's connection to the side that described itself as RdmaCmAcceptor does.
class RdmaCmInitiator {
 public:
  /// Connects the side's queue pair. Throws Error, also if the description contradicts `offered`.
  RdmaCmInitiator(Side& side, const Resources& resources, const std::vector<IpAddress>& offered,
                  const JsonReader& description, const Deadline& deadline);

  /// Both addresses and the port, for the report.
  [[nodiscard]] nlohmann::json report() const;

 private:
  RdmaCmPath path_;
  RdmaCmTarget target_;
  RdmaCmConnection connection_;
};

/// The target's half. It accepts in a thread of its own, because the initiator can fail meanwhile
/// and then only says so over the channel.
class RdmaCmAcceptor {
 public:
  /// Listens on the own address that suits one of `offered`. Throws Error. Both references must
  /// outlive the object.
  RdmaCmAcceptor(Side& side, const Resources& resources, const std::vector<IpAddress>& offered,
                 const Deadline& deadline);

  /// What the initiator needs: addresses, port and token.
  [[nodiscard]] nlohmann::json describe() const;
  void start();
  /// Waits until the connection is established. Throws what prevented it.
  void finish();
  /// Stops waiting. Throws what had prevented the connection before, if anything.
  void stop();

 private:
  Side& side_;
  const Deadline& deadline_;
  RdmaCmPath path_;
  std::string token_;
  RdmaCmListener listener_;
  std::optional<RdmaCmConnection> connection_;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace vfpass::probe
