#include "vfpass/remote/observe_protocol.hpp"

#include <algorithm>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/model/lease_fields.hpp"
#include "vfpass/model/record.hpp"

// The members of the protocol's replies, used for both writing and reading.

namespace vfpass::model {

// MAX_NUMNODES of Linux: CONFIG_NODES_SHIFT is at most 10.
inline constexpr unsigned highestNode = 1023;

inline bool isShortEntryName(const std::string& name) {
  return isEntryName(name) && name.size() <= 255;
}

template <typename Archive>
void fields(Archive& archive, PcieLink& link) {
  archive("speed", link.speed);
  archive("width", link.width);
}

template <typename Archive>
void fields(Archive& archive, verify::GpuPath& path) {
  archive("link", path.link);
  archive("through_root_complex", path.throughRootComplex);
  archive("distance", path.distance);
  archive("in_xml", path.inXml);
  archive("nic", path.nic);
  archive("degraded", path.degraded);
}

template <typename Archive>
void fields(Archive& archive, verify::LeasedGpu& gpu) {
  archive("entry", gpu.entry);
  archive("guest_path", gpu.guestPath);
  archive("paths", gpu.paths);
}

template <typename Archive>
void fields(Archive& archive, verify::DeviceHold& hold) {
  archive("in_live_xml", hold.inLiveXml);
  archive("driver", hold.driver);
  archive("by_this_domain", hold.byThisDomain);
  archive("holder", hold.holder);
}

template <typename Archive>
void fields(Archive& archive, verify::HostPlacement::Place& place) {
  archive.checked("entry", place.entry, isShortEntryName);
  archive("node", place.node);
}

template <typename Archive>
void fields(Archive& archive, verify::HostPlacement& placement) {
  archive("devices", placement.devices);
  archive("host_nodes", placement.hostNodes);
  archive.orNull("vcpu_nodes", placement.vcpuNodes);
  archive.orNull("memory_nodes", placement.memoryNodes);
  archive("automatic", placement.automatic);
  archive("guest_cells", placement.guestCells);
}

inline bool isPlacement(const std::optional<verify::HostPlacement>& placement) {
  const auto hasNodes = [](const std::optional<std::set<unsigned>>& nodes) {
    return !nodes || nodes->empty() || *nodes->rbegin() <= highestNode;
  };
  return !placement || (placement->devices.size() <= remote::mostPlacedDevices &&
                        placement->hostNodes <= highestNode + 1 && hasNodes(placement->vcpuNodes) &&
                        hasNodes(placement->memoryNodes) &&
                        std::ranges::all_of(placement->devices, [](const auto& device) {
                          return device.node <= highestNode;
                        }));
}

template <typename Archive>
void fields(Archive& archive, remote::Observation& observation) {
  archive("boot_id", observation.bootId);
  archive.orNull("nvlink", observation.nvlink);
  archive("gpus", observation.gpus);
  archive.checked("placement", observation.placement, isPlacement);
}

template <typename Archive>
void fields(Archive& archive, PciePackets& packets) {
  archive("payload", packets.payload);
  archive("payload_supported", packets.payloadSupported);
  archive("read_request", packets.readRequest);
  archive("relaxed_ordering", packets.relaxedOrdering);
}

template <typename Archive>
void fields(Archive& archive, verify::HostPackets& packets) {
  archive("pf", packets.pf);
  archive("payload_possible", packets.payloadPossible);
}

template <typename Archive>
void fields(Archive& archive, verify::HostSide& side) {
  archive("vendor", side.vendor);
  archive("device", side.device);
  archive("link", side.link);
  archive("port_rate", side.portRate);
  archive.orNull("guest_mtu", side.guestMtu);
  archive("hold", side.hold);
  archive("guest_path", side.guestPath);
  archive("degraded", side.degraded);
  archive.orNull("gid_index", side.gidIndex);
  archive("guest_address", side.guestAddress);
  archive.orNull("packets", side.packets);
}

template <typename Archive>
void fields(Archive& archive, VfTraffic& traffic) {
  archive("received_bytes", traffic.receivedBytes);
  archive("sent_bytes", traffic.sentBytes);
  archive("received_packets", traffic.receivedPackets);
  archive("sent_packets", traffic.sentPackets);
}

}  // namespace vfpass::model

namespace vfpass::remote {

Error differentVersion(int theirs) {
  return Error("the two versions of vfpass cannot work together: protocol " +
                   std::to_string(protocolVersion) + " and " + std::to_string(theirs),
               "install the same version of vfpass on both hosts");
}

namespace {

using Json = nlohmann::json;

constexpr JsonLimits requestLimits{longestRequest, 4};

Json errorReply(const std::string& message, const std::string& remedy) {
  return {{"error", message}, {"remedy", remedy}};
}

Json answer(const JsonReader& request, const ServedHost& served) {
  if (const JsonReader domain = request["domain"]; !domain.isMissing()) {
    if (const int theirs = request["version"].requireNumber<int>(); theirs != protocolVersion) {
      const Error refusal = differentVersion(theirs);
      return errorReply(refusal.what(), refusal.remedy());
    }
    return remote::toJson(served.describe(domain.requireParsed(parseUuid)));
  }
  if (const JsonReader host = request["host"]; !host.isMissing()) {
    return remote::toJson(served.host(host.requireText()));
  }
  if (const JsonReader rdma = request["rdma"]; !rdma.isMissing()) {
    return remote::toJson(served.rdma(rdma.requireText()));
  }
  return remote::toJson(served.traffic(request["traffic"].requireText()));
}

Json replyOrError(const std::string& request, const ServedHost& served) {
  const JsonSource source{"invalid request"};
  try {
    const Json parsed = parseJson(request, requestLimits, source);
    return answer(JsonReader(parsed, source), served);
  } catch (const Error& error) {
    return errorReply(error.what(), error.remedy());
  }
}

}  // namespace

Json toJson(const Observation& observation) {
  Json json = model::encode(observation);
  json["version"] = protocolVersion;
  return json;
}

Observation readObservation(const JsonReader& json) { return model::decode<Observation>(json); }

Json toJson(const verify::HostSide& side) { return model::encode(side); }

verify::HostSide readHostSide(const JsonReader& json) {
  return model::decode<verify::HostSide>(json);
}

Json toJson(const std::optional<VfTraffic>& traffic) {
  return traffic ? model::encode(*traffic) : Json();
}

std::optional<VfTraffic> readTraffic(const JsonReader& json) {
  return json.json().is_null() ? std::nullopt : std::optional(model::decode<VfTraffic>(json));
}

std::string replyTo(const std::string& request, const ServedHost& served) {
  return replyOrError(request, served).dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace vfpass::remote
