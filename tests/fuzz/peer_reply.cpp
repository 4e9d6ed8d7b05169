// Replies of the vfpass on another host: the first byte selects the request, the rest is the reply.
// covers: src/guest/remote/remote_host.cpp src/guest/remote/observe_protocol.cpp -observe -answer
// -errorReply -replyOrError -replyTo -LibvirtTunnel -NameFolder -RemoteLibvirt -throwSystemError
// -timeLeft -noReply
#include <nlohmann/json.hpp>

#include "fuzz/target.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/remote/remote_host.hpp"

namespace vfpass::fuzz {
namespace {

using Json = nlohmann::json;

const char* const observation =
    R"({"version": 2, "boot_id": "b", "nvlink": null, "gpus": [], "partition": null})";

// Every number of `written` is the one in `reply`.
bool hasSameNumbers(const Json& written, const Json& reply) {
  if (written.is_object()) {
    for (const auto& [name, value] : written.items()) {
      if (!hasSameNumbers(value, reply.at(name))) {
        return false;
      }
    }
  }
  return !written.is_number() || (reply.is_number_integer() && written == reply);
}

remote::RemoteHost hostWith(std::string_view first, std::string_view later) {
  auto replies = std::make_shared<int>(0);
  return {"host2",
          [=](const std::string&) { return std::string((*replies)++ == 0 ? first : later); },
          Uuid{}};
}

void readFirst(std::string_view reply) {
  const auto host = hostWith(reply, {});
  const Json written = remote::toJson(host.observation());
  JsonSource source{"an observation"};
  source.allowsUnknownMembers = true;  // the version
  require(remote::toJson(remote::readObservation(JsonReader(written, source))) == written,
          "an observation that is written reads the same");
}

void readHost(std::string_view reply) {
  const auto side = hostWith(observation, reply).host("rail0");
  const Json written = remote::toJson(side);
  require(remote::toJson(remote::readHostSide(JsonReader(written))) == written,
          "the host's side that is written reads the same");
  require(hasSameNumbers(written, Json::parse(reply)), "numbers are read as they were written");
}

void readTraffic(std::string_view reply) {
  const auto traffic = hostWith(observation, reply).traffic("rail0");
  const Json written = remote::toJson(traffic);
  require(remote::readTraffic(JsonReader(written)) == traffic,
          "counters that are written read the same");
  require(hasSameNumbers(written, Json::parse(reply)), "counters are read as they were written");
}

}  // namespace

void runTarget(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const std::string_view reply = input.substr(1);
  accepted([&] {
    switch (input.front() % 3) {
      case 0:
        readFirst(reply);
        break;
      case 1:
        readHost(reply);
        break;
      default:
        readTraffic(reply);
    }
    return true;
  });
}

}  // namespace vfpass::fuzz
