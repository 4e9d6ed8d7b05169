#include "vfpass/remote/observation.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits requestLimits{longestRequest, 4};

Json toJson(const PcieLink& link) { return {{"speed", link.speed}, {"width", link.width}}; }

// get() converts everything: 70000 into 4464 of 16 bits, -1 into 4294967295, and true into 1. For a
// fraction that is too large, the conversion is undefined.
template <typename Number>
Number readNumber(const Json& value) {
  const bool fits = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() <= std::numeric_limits<Number>::max();
  return (fits ? std::optional(value.get<Number>()) : std::nullopt).value();
}

PcieLink readLink(const Json& value) {
  return {readNumber<unsigned>(value.at("speed")), readNumber<unsigned>(value.at("width"))};
}

Json toJson(const std::vector<PciAddress>& path) {
  Json list = Json::array();
  for (const PciAddress& address : path) {
    list.push_back(toString(address));
  }
  return list;
}

std::vector<PciAddress> readPath(const Json& value) {
  std::vector<PciAddress> path;
  for (const Json& each : value) {
    path.push_back(parsePciAddress(each.get<std::string>()).value());
  }
  return path;
}

Json toJson(const verify::GpuPath& path) {
  return {{"link", toJson(path.link)},
          {"through_root_complex", path.throughRootComplex},
          {"distance", path.distance},
          {"in_xml", path.inXml}};
}

verify::GpuPath readGpuPath(const Json& value) {
  return {readLink(value.at("link")), value.at("through_root_complex").get<bool>(),
          value.at("distance").get<std::string>(), value.at("in_xml").get<std::string>()};
}

Json toJson(const verify::LeasedGpu& gpu) {
  Json paths = Json::object();
  for (const auto& [entry, path] : gpu.paths) {
    paths[entry] = toJson(path);
  }
  return {{"entry", gpu.entry}, {"guest_path", toJson(gpu.guestPath)}, {"paths", paths}};
}

verify::LeasedGpu readGpu(const Json& value) {
  verify::LeasedGpu gpu{value.at("entry").get<std::string>(), readPath(value.at("guest_path")), {}};
  for (const auto& [entry, path] : value.at("paths").items()) {
    gpu.paths[entry] = readGpuPath(path);
  }
  return gpu;
}

Json toJson(const verify::DeviceHold& hold) {
  return {{"in_live_xml", hold.inLiveXml},
          {"driver", hold.driver},
          {"by_this_domain", hold.byThisDomain},
          {"holder", hold.holder}};
}

verify::DeviceHold readHold(const Json& value) {
  return {value.at("in_live_xml").get<bool>(), value.at("driver").get<std::string>(),
          value.at("by_this_domain").get<bool>(), value.at("holder").get<std::string>()};
}

Json errorReply(const std::string& message, const std::string& remedy) {
  return {{"error", message}, {"remedy", remedy}};
}

Json answer(const Json& request, const ServedHost& served) {
  if (request.contains("domain")) {
    if (request.at("version") != protocolVersion) {
      return errorReply("this vfpass does not understand the other host's",
                        "install the same version of vfpass on both hosts");
    }
    return remote::toJson(
        served.describe(parseUuid(request.at("domain").get<std::string>()).value()));
  }
  if (request.contains("host")) {
    return remote::toJson(served.host(request.at("host").get<std::string>()));
  }
  return remote::toJson(served.traffic(request.at("traffic").get<std::string>()));
}

}  // namespace

Json toJson(const Observation& observation) {
  Json gpus = Json::array();
  for (const auto& gpu : observation.gpus) {
    gpus.push_back(toJson(gpu));
  }
  return {{"version", protocolVersion},
          {"boot_id", observation.bootId},
          {"nvlink", observation.nvlink ? Json(toString(*observation.nvlink)) : Json()},
          {"gpus", gpus}};
}

Observation readObservation(const Json& value) {
  Observation observation;
  observation.bootId = value.at("boot_id").get<std::string>();
  if (const Json& nvlink = value.at("nvlink"); !nvlink.is_null()) {
    observation.nvlink = parseNvlinkMode(nvlink.get<std::string>()).value();
  }
  for (const Json& gpu : value.at("gpus")) {
    observation.gpus.push_back(readGpu(gpu));
  }
  return observation;
}

Json toJson(const verify::HostSide& side) {
  return {{"vendor", side.vendor},
          {"device", side.device},
          {"link", toJson(side.link)},
          {"port_rate", side.portRate},
          {"guest_mtu", side.guestMtu ? Json(*side.guestMtu) : Json()},
          {"hold", toJson(side.hold)},
          {"guest_path", toJson(side.guestPath)}};
}

verify::HostSide readHostSide(const Json& value) {
  verify::HostSide side;
  side.vendor = readNumber<std::uint16_t>(value.at("vendor"));
  side.device = readNumber<std::uint16_t>(value.at("device"));
  side.link = readLink(value.at("link"));
  side.portRate = readNumber<unsigned>(value.at("port_rate"));
  if (const Json& mtu = value.at("guest_mtu"); !mtu.is_null()) {
    side.guestMtu = readNumber<unsigned>(mtu);
  }
  side.hold = readHold(value.at("hold"));
  side.guestPath = readPath(value.at("guest_path"));
  return side;
}

Json toJson(const std::optional<VfTraffic>& traffic) {
  return traffic ? Json{{"received_bytes", traffic->receivedBytes},
                        {"sent_bytes", traffic->sentBytes},
                        {"received_packets", traffic->receivedPackets},
                        {"sent_packets", traffic->sentPackets}}
                 : Json();
}

std::optional<VfTraffic> readTraffic(const Json& value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  const auto number = [&](const char* name) { return readNumber<std::uint64_t>(value.at(name)); };
  return VfTraffic{number("received_bytes"), number("sent_bytes"), number("received_packets"),
                   number("sent_packets")};
}

std::string replyTo(const std::string& request, const ServedHost& served) {
  try {
    return answer(parseBoundedJson(request, requestLimits), served)
        .dump(-1, ' ', true, Json::error_handler_t::replace);
  } catch (const Error& error) {
    return errorReply(error.what(), error.remedy())
        .dump(-1, ' ', true, Json::error_handler_t::replace);
  } catch (const JsonRefused& error) {
    return errorReply(std::string("invalid request: ") + error.what(), "").dump();
  } catch (const std::exception&) {  // a member is missing or of another type
    return errorReply("invalid request", "").dump();
  }
}

}  // namespace vfpass::remote
