#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "channel/channel.hpp"
#include "rdma/queue_pair_connection.hpp"
#include "transfer/transfer_settings.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

TEST(Message, IsBoundedInSizeAndDepth) {
  EXPECT_THROW(parseMessage(std::string(largestMessage + 1, ' ')), Error);
  EXPECT_THROW(parseMessage(std::string(1000, '[') + std::string(1000, ']')), Error);
  EXPECT_THROW(parseMessage("{"), Error);
  EXPECT_EQ(parseMessage(R"({"type":"end"})").at("type"), "end");
}

TEST(Message, RefusesMembersOfWrongType) {
  const Json message = Json::parse(R"({"number": 5, "text": "a", "flag": true})");
  const JsonReader reader = readerOf(message);
  const auto numberIn = [](const char* text) {
    return readerOf(Json::parse(text))["number"].requireNumber();
  };
  EXPECT_EQ(reader["number"].requireNumber(), 5U);
  EXPECT_THROW(static_cast<void>(reader["number"].requireNumber(4U)), Error);
  EXPECT_THROW(numberIn(R"({"number":-5})"), Error);
  EXPECT_THROW(numberIn(R"({"number":1.5})"), Error);
  EXPECT_THROW(static_cast<void>(reader["number"].requireText()), Error);
  EXPECT_THROW(static_cast<void>(reader["absent"].requireFlag()), Error);
  EXPECT_THROW(static_cast<void>(readerOf(Json::array())["flag"].requireFlag()), Error);
}

ConnectionInfo sampleConnection() {
  ConnectionInfo info;
  info.queuePair = 0xabcdef;
  info.packetSequence = 1;
  info.localId = 7;
  info.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  info.ethernet = true;
  info.globalHeader = true;
  info.partitions = {0xffff, 0, 0x8001};
  info.mtu = 5;
  info.address = UINT64_MAX;
  info.key = UINT32_MAX;
  return info;
}

TEST(Connection, RoundTripsThroughJson) {
  const ConnectionInfo info = sampleConnection();
  const ConnectionInfo read = connectionFromJson(readerOf(Json::parse(toJson(info).dump())));
  EXPECT_EQ(read.queuePair, info.queuePair);
  EXPECT_EQ(read.gid, info.gid);
  EXPECT_EQ(read.mtu, info.mtu);
  EXPECT_EQ(read.globalHeader, info.globalHeader);
  EXPECT_EQ(read.partitions, info.partitions);
  EXPECT_EQ(read.address, info.address);
  EXPECT_EQ(read.key, info.key);
  EXPECT_EQ(read.ethernet, info.ethernet);
}

TEST(Connection, RefusesInvalidMembers) {
  const Json good = toJson(sampleConnection());
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, Json>>{{"queue_pair", 0x1000000},
                                                 {"mtu", 0},
                                                 {"mtu", 6},
                                                 {"gid", "fe80"},
                                                 {"gid", 5},
                                                 {"key", UINT64_MAX},
                                                 {"lid", 65536},
                                                 {"ethernet", "yes"},
                                                 {"grh_required", 1},
                                                 {"p_keys", 5},
                                                 {"p_keys", {65536}},
                                                 {"p_keys", {-1}},
                                                 {"p_keys", {"0xffff"}},
                                                 {"p_keys", std::vector<int>(257, 1)},
                                                 {"address", -1}}) {
    Json bad = good;
    bad[name] = value;
    EXPECT_THROW(connectionFromJson(readerOf(Json::parse(bad.dump()))), Error)
        << name << " " << value;
  }
}

TEST(Settings, RoundTripThroughJson) {
  Settings settings;
  settings.operation = Operation::read;
  settings.bytes = 4097;
  settings.injection = {Fault::stale, 9};
  settings.targetOnGpu = true;
  settings.rdmaCm = true;
  const Settings read = settingsFromJson(readerOf(Json::parse(toJson(settings).dump())));
  EXPECT_EQ(toJson(read), toJson(settings));
}

TEST(Settings, RefuseInvalidValues) {
  const auto refused = [](auto change) {
    Settings settings;
    change(settings);
    EXPECT_THROW(settingsFromJson(readerOf(Json::parse(toJson(settings).dump()))), Error);
  };
  refused([](Settings& settings) { settings.bytes = 1; });
  refused([](Settings& settings) { settings.bytes = (16U << 20U) + 1; });
  refused([](Settings& settings) { settings.iterations = 0; });
  refused([](Settings& settings) { settings.depth = 0; });
  refused([](Settings& settings) { settings.depth = 1U << 20U; });
  refused([](Settings& settings) { settings.alignment = 64; });
  refused([](Settings& settings) { settings.memoryLimit = UINT64_MAX; });
  refused([](Settings& settings) { settings.latency = true; });
  refused([](Settings& settings) {
    settings.operation = Operation::send;
    settings.injection.fault = Fault::lost;
  });
  refused([](Settings& settings) {
    settings.check = false;
    settings.injection.fault = Fault::flip;
  });
  refused([](Settings& settings) { settings.injection = {Fault::duplicate, 0}; });
  refused([](Settings& settings) { settings.injection = {Fault::flip, settings.iterations}; });
}

TEST(Settings, PresetsAreValid) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    names.emplace_back(preset.name);
    for (const Settings& settings : preset.runs) {
      EXPECT_NO_THROW(validate(settings)) << preset.name;
    }
  }
  EXPECT_THAT(names, testing::ElementsAre("quick", "sizes", "latency", "published"));
  const Settings published = presets().back().runs.at(0);
  EXPECT_EQ(published.bytes, 10'000'000U);
  EXPECT_EQ(published.iterations, 10'000U);
}

TEST(Settings, ChooseModerationAsPerftest) {
  Settings settings;
  EXPECT_EQ(moderationOf(settings), 1U);
  settings.bytes = 8192;
  settings.depth = 512;
  EXPECT_EQ(moderationOf(settings), 100U);
  settings.depth = 16;
  EXPECT_EQ(moderationOf(settings), 8U);
  settings.depth = 1;
  EXPECT_EQ(moderationOf(settings), 1U);
}

}  // namespace
}  // namespace vfpass::probe
