#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "rdma/endpoint.hpp"
#include "rdma/ip_address.hpp"
#include "rdma/rdma_core.hpp"
#include "vfpass/base/deadline.hpp"

namespace vfpass::probe {

class RdmaCmChannel;

/// The two ends that rdma_cm connects, for messages.
struct RdmaCmPath {
  std::string device;
  IpAddress own;
  IpAddress peer;
};

/// An identifier of rdma_cm, comparable to a socket. It must not outlive its channel.
using RdmaCmId = std::unique_ptr<rdma_cm_id, int (*)(rdma_cm_id*)>;

/// A connection of an endpoint's queue pair, disconnected by the destructor.
class RdmaCmConnection {
 public:
  RdmaCmConnection(std::shared_ptr<RdmaCmChannel> channel, RdmaCmId id)
      : channel_(std::move(channel)), id_(std::move(id)) {}
  RdmaCmConnection(RdmaCmConnection&&) = default;
  RdmaCmConnection(const RdmaCmConnection&) = delete;
  RdmaCmConnection& operator=(RdmaCmConnection&&) = delete;
  RdmaCmConnection& operator=(const RdmaCmConnection&) = delete;
  ~RdmaCmConnection();

 private:
  std::shared_ptr<RdmaCmChannel> channel_;
  RdmaCmId id_;
};

/// The libraries that a connection needs.
struct RdmaCmLibraries {
  std::shared_ptr<const VerbsLibrary> verbs;
  std::shared_ptr<const RdmaCmLibrary> rdmaCm;
};

/// Where the other side listens.
struct RdmaCmTarget {
  std::uint16_t port = 0;
  std::string token;  ///< at most 56 bytes; the other side accepts only this one
};

/// Connects the endpoint's queue pair to the peer: binds to the own address, so that no other
/// device is used, then resolves address and route. Throws Error with the event's name, its status
/// and a remedy.
RdmaCmConnection connectByRdmaCm(const RdmaCmLibraries& libraries, Endpoint& endpoint,
                                 const RdmaCmPath& path, const RdmaCmTarget& target,
                                 const Deadline& deadline);

/// Listens on the own address of a path.
class RdmaCmListener {
 public:
  /// Throws Error, also if the address belongs to another device.
  RdmaCmListener(RdmaCmLibraries libraries, RdmaCmPath path);

  [[nodiscard]] std::uint16_t port() const;

  /// Waits for a request with this token, rejects others, and connects the endpoint's queue pair.
  /// Throws Error.
  RdmaCmConnection accept(Endpoint& endpoint, const std::string& token, const Deadline& deadline,
                          const std::stop_token& stop);

 private:
  RdmaCmId awaitRequest(const std::string& token, const Deadline& deadline,
                        const std::stop_token& stop);

  RdmaCmLibraries libraries_;
  RdmaCmPath path_;
  std::shared_ptr<RdmaCmChannel> channel_;
  RdmaCmId id_;
};

}  // namespace vfpass::probe
