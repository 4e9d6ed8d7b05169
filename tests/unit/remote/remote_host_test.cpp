#include "vfpass/remote/remote_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Uuid domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");

verify::HostSide hostSide() {
  verify::HostSide side;
  side.vendor = 0x15b3;
  side.device = 0x101e;
  side.link = {16000, 16};
  side.portRate = 200000;
  side.guestMtu = 9000;
  side.hold = {true, "vfio-pci", true, "process 42 (qemu-system-x86_64)"};
  side.guestPath = {*parsePciAddress("0000:00:01.0"), *parsePciAddress("0000:01:00.0")};
  side.degraded = "the link of 0000:03:00.0 runs at Gen3 x4 of Gen4 x16";
  return side;
}

Observation observation() {
  verify::LeasedGpu gpu;
  gpu.entry = "gpu0";
  gpu.guestPath = {*parsePciAddress("0000:00:02.0")};
  gpu.paths["rail0"] = {{32000, 16}, true, "PHB", "PIX", {16000, 8}, "slow"};
  verify::HostPlacement placement;
  placement.devices = {{"gpu0", 1}, {"rail0", 0}};
  placement.hostNodes = 2;
  placement.vcpuNodes = {0, 1};
  placement.guestCells = true;
  return {"boot", NvlinkMode::partition, {gpu}, placement};
}

// Both sides of the protocol, without ssh between them.
class RemoteHostTest : public testing::Test {
 protected:
  RemoteHost connect() {
    return {"host2", [this](const std::string& line) { return replyTo(line, served); }, domain};
  }
  std::string errorWithReply(const std::string& reply) {
    try {
      const RemoteHost host(
          "host2", [&](const std::string&) { return reply; }, domain);
      return "no error";
    } catch (const Error& error) {
      return std::string(error.what()) + "|" + error.remedy();
    }
  }

  Uuid asked;
  ServedHost served{[this](const Uuid& uuid) {
                      asked = uuid;
                      return observation();
                    },
                    [](const std::string&) { return hostSide(); },
                    [](const std::string& entry) -> std::optional<VfTraffic> {
                      if (entry == "rail0") {
                        return VfTraffic{1, 2, 3, 1ULL << 60U};
                      }
                      return std::nullopt;
                    }};
};

TEST_F(RemoteHostTest, ObservationsArriveUnchanged) {
  const RemoteHost host = connect();
  EXPECT_EQ(asked, domain);
  EXPECT_EQ(host.observation().bootId, "boot");
  EXPECT_EQ(host.observation().nvlink, NvlinkMode::partition);
  ASSERT_EQ(host.observation().gpus.size(), 1U);
  const auto& gpu = host.observation().gpus[0];
  EXPECT_EQ(gpu.entry, "gpu0");
  EXPECT_THAT(gpu.guestPath, ElementsAre(*parsePciAddress("0000:00:02.0")));
  const auto& path = gpu.paths.at("rail0");
  EXPECT_EQ(path.link, (PcieLink{32000, 16}));
  EXPECT_TRUE(path.throughRootComplex);
  EXPECT_EQ(path.distance + " " + path.inXml + " " + path.degraded, "PHB PIX slow");
  EXPECT_EQ(path.nic, (PcieLink{16000, 8}));

  const auto& placement = host.observation().placement;
  ASSERT_TRUE(placement);
  ASSERT_EQ(placement->devices.size(), 2U);
  EXPECT_EQ(placement->devices[0].entry, "gpu0");
  EXPECT_EQ(placement->devices[0].node, 1U);
  EXPECT_EQ(placement->hostNodes, 2U);
  EXPECT_EQ(placement->vcpuNodes, (std::set<unsigned>{0, 1}));
  EXPECT_EQ(placement->memoryNodes, std::nullopt);
  EXPECT_TRUE(placement->guestCells && !placement->automatic);

  const auto side = host.host("rail0");
  EXPECT_EQ(toJson(side), toJson(hostSide()));
  EXPECT_EQ(side.hold.holder, "process 42 (qemu-system-x86_64)");
  EXPECT_EQ(side.guestMtu, 9000U);
  EXPECT_EQ(side.degraded, hostSide().degraded);
  EXPECT_EQ(host.traffic("rail0"), (VfTraffic{1, 2, 3, 1ULL << 60U}));
  EXPECT_EQ(host.traffic("rail1"), std::nullopt);
}

TEST_F(RemoteHostTest, ErrorOfTheOtherHostKeepsMessageAndRemedy) {
  served.describe = [](const Uuid&) -> Observation {
    throw Error("domain train1 is not running", "run `virsh start train1`");
  };
  try {
    connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "host2: domain train1 is not running");
    EXPECT_EQ(error.remedy(), "run `virsh start train1`");
  }
}

TEST_F(RemoteHostTest, MalformedReplyIsAnError) {
  for (
      const char* reply :
      {"", "Welcome to host2!", "[]", "{}", R"({"version": 2, "boot_id": 7})", "null",
       R"({"version":2,"boot_id":"b","nvlink":"warp","gpus":[]})",
       R"({"version":2,"boot_id":"b","nvlink":null,"gpus":[{"entry":"g","guest_path":["x"],"paths":{}}]})",
       R"({"error": 7})"}) {
    EXPECT_THAT(errorWithReply(reply), HasSubstr("host2: invalid reply")) << reply;
  }
}

// Hosts are upgraded one after another. The reply has nothing else that is wrong.
TEST_F(RemoteHostTest, RefusesReplyOfAnotherProtocolVersion) {
  auto reply = toJson(observation());
  for (const int version : {1, 3}) {
    reply["version"] = version;
    try {
      const RemoteHost host(
          "host2", [&](const std::string&) { return reply.dump(); }, domain);
      FAIL() << version;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "host2: the two versions of vfpass cannot work together: protocol 2 and " +
                    std::to_string(version));
      EXPECT_EQ(error.remedy(), "install the same version of vfpass on both hosts");
    }
  }
}

TEST_F(RemoteHostTest, ReplyOfEarlierVfpassHasNoPlacement) {
  auto reply = toJson(observation());
  reply.erase("placement");
  const RemoteHost host(
      "host2", [&](const std::string&) { return reply.dump(); }, domain);
  EXPECT_EQ(host.observation().bootId, "boot");
  EXPECT_FALSE(host.observation().placement);
}

// A later one adds members without a new version of the protocol only if they can be ignored.
TEST_F(RemoteHostTest, IgnoresMembersOfLaterVfpassWithSameProtocol) {
  auto reply = toJson(observation());
  for (const char* place : {"", "/gpus/0", "/gpus/0/paths/rail0", "/placement"}) {
    reply[nlohmann::json::json_pointer(std::string(place) + "/later")] = 7;
  }
  EXPECT_EQ(errorWithReply(reply.dump()), "no error");
  auto side = toJson(hostSide());
  side["later"] = 7;
  side["hold"]["later"] = 7;
  bool first = true;
  const RemoteHost host(
      "host2",
      [&](const std::string&) { return std::exchange(first, false) ? reply.dump() : side.dump(); },
      domain);
  EXPECT_EQ(toJson(host.host("rail0")), toJson(hostSide()));
}

TEST_F(RemoteHostTest, PlacementIsBounded) {
  auto whole = toJson(observation());
  EXPECT_EQ(errorWithReply(whole.dump()), "no error");
  const auto error = [&](const std::string& place, const nlohmann::json& value) {
    auto reply = whole;
    reply[nlohmann::json::json_pointer("/placement" + place)] = value;
    return errorWithReply(reply.dump());
  };
  EXPECT_EQ(error("/vcpu_nodes", nullptr), "no error");
  for (const auto& [place, value] : std::vector<std::pair<std::string, nlohmann::json>>{
           {"", 7},
           {"/host_nodes", -1},
           {"/host_nodes", 1025},
           {"/devices/0/node", 1024},
           {"/devices/0/entry", "\u001b[2J"},
           {"/devices/0/entry", std::string(256, 'x')},
           {"/vcpu_nodes", {1, 1024}},
           {"/memory_nodes", {1024}},
           {"/memory_nodes", "all"},
           {"/devices", nlohmann::json::array_t(1025, {{"entry", "x"}, {"node", 0}})}}) {
    EXPECT_THAT(error(place, value), HasSubstr("host2: invalid reply")) << place << " " << value;
  }
}

TEST_F(RemoteHostTest, NumberOutOfRangeIsAnError) {
  const auto whole = toJson(hostSide());
  EXPECT_EQ(readHostSide(JsonReader(whole)).portRate, 200000U);
  for (const char* name : {"vendor", "device", "port_rate", "guest_mtu"}) {
    for (const char* number : {"-1", "4294967296", "1.5", "1e300", "true"}) {
      auto changed = whole;
      changed[name] = nlohmann::json::parse(number);
      EXPECT_THROW(readHostSide(JsonReader(changed)), std::exception) << name << " " << number;
    }
  }
  auto wide = whole;
  wide["vendor"] = 65536U;
  EXPECT_THROW(readHostSide(JsonReader(wide)), std::exception);
  auto counters = toJson(std::optional(VfTraffic{1, 2, 3, 4}));
  counters["sent_bytes"] = -1;
  EXPECT_THROW(readTraffic(JsonReader(counters)), std::exception);
}

TEST_F(RemoteHostTest, LongOrDeepReplyIsAnError) {
  EXPECT_THAT(errorWithReply("\"" + std::string(2U << 20U, 'x') + "\""),
              HasSubstr("invalid reply"));
  EXPECT_THAT(errorWithReply(std::string(1000, '[') + std::string(1000, ']')),
              HasSubstr("invalid reply"));
}

TEST_F(RemoteHostTest, ControlCharactersOfTheOtherHostAreEscaped) {
  EXPECT_THAT(errorWithReply(R"({"error": "\u001b[2J", "remedy": "\u0007"})"),
              testing::Not(testing::AnyOf(HasSubstr("\x1b"), HasSubstr("\x07"))));
}

TEST_F(RemoteHostTest, RefusesRequestsThatItDoesNotUnderstand) {
  EXPECT_THAT(
      replyTo(R"({"version": 99, "domain": "0f5e9a3c-1111-4222-8333-944455566677"})", served),
      testing::AllOf(HasSubstr("protocol 2 and 99"), HasSubstr("same version")));
  for (const char* request :
       {"", "{}", "[1]", R"({"host": 7})", R"({"version": 2, "domain": "x"})"}) {
    EXPECT_THAT(replyTo(request, served), HasSubstr("invalid request")) << request;
  }
  EXPECT_THAT(replyTo(R"({"host": ")" + std::string(10000, 'x') + "\"}", served),
              HasSubstr("invalid request"));
}

}  // namespace
}  // namespace vfpass::remote
