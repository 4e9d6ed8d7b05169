#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass {
class JsonReader;
}

namespace vfpass::remote {

/// What a host knows of one of its running VMs when a verification begins.
struct Observation {
  std::string bootId;  ///< equal boot IDs mean the same host
  std::optional<NvlinkMode> nvlink;
  std::vector<verify::LeasedGpu> gpus;
  /// nullopt: unknown; an earlier vfpass with the same protocolVersion does not send it.
  std::optional<verify::HostPlacement> placement = {};
};

/// More devices than one VM can have.
inline constexpr std::size_t mostPlacedDevices = 1024;

// The protocol between two vfpass: one JSON object per line, first request then reply. It is
// internal; both sides must have the same protocolVersion.
//
//   {"version": 2, "domain": UUID}  the Observation; first, and only once
//   {"host": ENTRY}                 the HostSide of the entry
//   {"traffic": ENTRY}              the VfTraffic of the entry, or null
//   {"rdma": ENTRY}                 the same of RDMA alone, or null; an earlier vfpass with the
//   same
//                                   protocolVersion replies with an error
//
// Instead of any reply, {"error": MESSAGE, "remedy": TEXT}.
inline constexpr int protocolVersion = 2;
/// For verify: names both versions of the protocol, without the host.
Error differentVersion(int theirs);
/// Bytes of a request without the end of its line.
inline constexpr std::size_t longestRequest = 4096;

// The readers throw Error for a value that has another form. A reply may have members that this
// vfpass does not know, if the reader's source allows them.
nlohmann::json toJson(const Observation& observation);
Observation readObservation(const JsonReader& json);
nlohmann::json toJson(const verify::HostSide& side);
verify::HostSide readHostSide(const JsonReader& json);
nlohmann::json toJson(const std::optional<VfTraffic>& traffic);
std::optional<VfTraffic> readTraffic(const JsonReader& json);

/// What replies are made from.
struct ServedHost {
  std::function<Observation(const Uuid& domain)> describe;
  std::function<verify::HostSide(const std::string& entry)> host;
  std::function<std::optional<VfTraffic>(const std::string& entry)> traffic;
  std::function<std::optional<VfTraffic>(const std::string& entry)> rdma;
};

/// The reply to one request line. Never throws an Error: it becomes the reply.
std::string replyTo(const std::string& request, const ServedHost& served);

}  // namespace vfpass::remote
