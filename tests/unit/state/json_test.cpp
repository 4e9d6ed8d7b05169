#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "samples.hpp"
#include "vfpass/error.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::state {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::string failureOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const CorruptDatabase& error) {
    return "corrupt: " + std::string(error.what()) + " | " + error.remedy();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.remedy();
  }
  return "no failure";
}

std::string leaseFailure(const std::string& text) {
  return failureOf([&] { leaseFromJson(text); });
}

std::string actionFailure(const std::string& text) {
  return failureOf([&] { actionFromJson(text); });
}

TEST(LeaseJson, RoundTripsEveryMember) {
  const Lease lease = sampleLease(1, "rail0", 3);
  EXPECT_EQ(leaseFromJson(leaseToJson(lease)), lease);
  Lease minimal;
  minimal.entry = "a";
  EXPECT_EQ(leaseFromJson(leaseToJson(minimal)), minimal);
}

TEST(LeaseJson, RoundTripsRandomLeases) {
  Generator generator(20240607);
  for (int run = 0; run < 300; ++run) {
    const Lease lease = generator.lease();
    const std::string text = leaseToJson(lease);
    ASSERT_EQ(leaseFromJson(text), lease) << text;
    ASSERT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(ActionJson, RoundTripsRandomActions) {
  Generator generator(7);
  std::set<std::size_t> kinds;
  for (int run = 0; run < 500; ++run) {
    const Action action = generator.action();
    kinds.insert(action.index());
    const std::string text = actionToJson(action);
    ASSERT_EQ(actionFromJson(text), action) << text;
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Action>);
}

TEST(ActionJson, KeepsTheOrderOfUndoActions) {
  Generator generator(11);
  std::vector<Action> actions;
  for (int count = 0; count < 12; ++count) {
    actions.push_back(generator.action());
    ASSERT_EQ(actionsFromJson(actionsToJson(actions)), actions);
  }
  EXPECT_TRUE(actionsFromJson(actionsToJson({})).empty());
}

TEST(ActionJson, StoredFormatIsStable) {
  // This vfpass must read records of older versions: change this only with a migration.
  const BindDriver bind{PciAddress{0, 0x3b, 0, 1}, "vfio-pci", "vfio-pci"};
  const std::string text =
      R"({"do":"bind-driver","driver":"vfio-pci","driver-override":"vfio-pci",)"
      R"("function":"0000:3b:00.1"})";
  EXPECT_EQ(actionToJson(bind), text);
  EXPECT_EQ(actionFromJson(text), Action(bind));
  const ConfigureVfs configure{PciAddress{0, 0x3b, 0, 0}, {}};
  const std::string earlier = R"({"do":"configure-vfs","pf":"0000:3b:00.0","vfs":[]})";
  EXPECT_EQ(actionToJson(configure), earlier);
  EXPECT_EQ(actionFromJson(earlier), Action(configure));
}

TEST(LeaseJson, RefusesMissingMembers) {
  const Json whole = Json::parse(leaseToJson(sampleLease(1, "rail0", 3)));
  for (const auto& [name, value] : whole.items()) {
    Json part = whole;
    part.erase(name);
    if (name == "teaming-with" || name == "migration-driver" || name == "edits" ||
        name == "refused") {  // the optional ones
      EXPECT_EQ(leaseFailure(part.dump()), "no failure");
      continue;
    }
    EXPECT_THAT(leaseFailure(part.dump()), HasSubstr("'" + name + "' is missing"));
    EXPECT_THAT(leaseFailure(part.dump()), HasSubstr("newer vfpass"));
  }
}

TEST(LeaseJson, RefusesWrongTypes) {
  const Json whole = Json::parse(leaseToJson(sampleLease(1, "rail0", 3)));
  for (const auto& [name, value] : whole.items()) {
    for (const Json& wrong : {Json(-1), Json(1.5), Json(nullptr), Json({{"x", 1}})}) {
      Json changed = whole;
      changed[name] = wrong;
      EXPECT_THAT(leaseFailure(changed.dump()), HasSubstr("newer vfpass")) << changed.dump();
    }
  }
}

TEST(LeaseJson, RefusesUnknownMembersAndValues) {
  Json lease = Json::parse(leaseToJson(sampleLease(1, "rail0", 3)));
  lease["settings"]["colour"] = "red";
  EXPECT_THAT(leaseFailure(lease.dump()), HasSubstr("unknown member 'colour'"));
  lease["settings"].erase("colour");
  lease["state"] = "hibernating";
  EXPECT_THAT(leaseFailure(lease.dump()), HasSubstr("unknown value 'hibernating'"));
  lease["state"] = "running";
  lease["pf"] = "0000:3b:00.9";
  EXPECT_THAT(leaseFailure(lease.dump()), HasSubstr("unknown value '0000:3b:00.9'"));
  EXPECT_THAT(leaseFailure(lease.dump()), HasSubstr("move /var/lib/vfpass/vfpass.db* "));
}

TEST(LeaseJson, RefusesPathsAsDriverNames) {
  Lease lease = sampleLease(1, "rail0", 3);
  Json json = Json::parse(leaseToJson(lease));
  json["original"]["driver"] = "../../../../../../tmp/x";
  EXPECT_THAT(leaseFailure(json.dump()), HasSubstr("'driver' is not a valid driver name"));
  lease.original.driverOverride = "/tmp/x_vfio-pci";
  EXPECT_THAT(failureOf([&] { leaseToJson(lease); }), HasSubstr("cannot restore"));
}

TEST(LeaseJson, HasNoDriverWhereTheNameIsEmptyAndNoOptionAsName) {
  Lease lease = sampleLease(1, "rail0", 3);
  lease.original.driver.clear();
  lease.original.driverOverride.clear();
  EXPECT_EQ(leaseFromJson(leaseToJson(lease)).original.driver, "");
  lease.original.driver = "-C";
  EXPECT_THAT(failureOf([&] { leaseToJson(lease); }), HasSubstr("cannot restore"));
}

TEST(ActionJson, RefusesPathsAsDriverNames) {
  EXPECT_THAT(actionFailure(R"({"do":"bind-driver","driver":"vfio-pci","driver-override":"../x",)"
                            R"("function":"0000:3b:00.1"})"),
              HasSubstr("'driver-override' is not a valid driver name"));
}

TEST(LeaseJson, RefusesNumbersOutOfRange) {
  Json lease = Json::parse(leaseToJson(sampleLease(1, "rail0", 3)));
  lease["settings"]["vlan"]["qos"] = 256;
  EXPECT_THAT(leaseFailure(lease.dump()), HasSubstr("a number up to 255"));
  lease["settings"]["vlan"]["qos"] = 7;
  EXPECT_EQ(leaseFailure(lease.dump()), "no failure");
}

TEST(ActionJson, RefusesUnknownKind) {
  EXPECT_THAT(actionFailure(R"({"do":"live-migrate"})"),
              HasSubstr("unknown action 'live-migrate'"));
  EXPECT_THAT(actionFailure(R"({"do":"live-migrate"})"), HasSubstr("newer vfpass"));
  EXPECT_THAT(actionFailure(R"({"pf":"0000:3b:00.0"})"), HasSubstr("'do' is missing"));
  EXPECT_THAT(actionFailure(R"({"do":"remove-vfs","pf":"0000:3b:00.0","force":true})"),
              HasSubstr("unknown member 'force'"));
  EXPECT_THAT(actionFailure("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(failureOf([] { actionsFromJson("{}"); }), HasSubstr("list of actions"));
}

TEST(ActionJson, InvalidJsonIsDamage) {
  for (const std::string text : {"", "{", "{\"do\":\"remove-vfs\"", "\xff\xff", "{}{}", "nul"}) {
    EXPECT_THAT(actionFailure(text), HasSubstr("corrupt: ")) << text;
  }
}

TEST(ActionJson, LimitsDepthAndSize) {
  EXPECT_THAT(actionFailure(std::string(100000, '[')),
              HasSubstr("nested more than 32 levels deep"));
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(actionFailure("{\"do\":" + deep + "}"), HasSubstr("nested more than 32 levels deep"));
  EXPECT_THAT(actionFailure(std::string(std::size_t{9} << 20U, ' ')),
              HasSubstr("larger than 8 MiB"));
}

TEST(ActionJson, RefusesTruncatedRecords) {
  const std::string text = actionToJson(RecordLease{sampleLease(1, "rail0", 3)});
  for (std::size_t length = 0; length < text.size(); ++length) {
    ASSERT_NE(actionFailure(text.substr(0, length)), "no failure") << length;
  }
}

TEST(LeaseJson, RefusesInvalidHexText) {
  Lease lease = sampleLease(1, "rail0", 3);
  lease.pfSerial = "a\xff";
  EXPECT_EQ(leaseFromJson(leaseToJson(lease)), lease);
  Json json = Json::parse(leaseToJson(lease));
  for (const char* const hex : {"6", "6g"}) {
    json["pf-serial"] = Json::object({{"hex", hex}});
    EXPECT_THAT(leaseFailure(json.dump()), HasSubstr("not hexadecimal"));
  }
}

TEST(LeaseJson, RefusesValuesThatNoMappingHas) {
  const Json valid = Json::parse(leaseToJson(sampleLease(1, "rail0", 3)));
  for (const auto& [member, value] : std::vector<std::pair<std::string, Json>>{
           {"/vf-name", "../x"},
           {"/vf-name", ""},
           {"/vfio-driver", "other"},
           {"/migration-driver", "other"},
           {"/settings/vlan", Json{{"id", 4095}, {"qos", 0}, {"protocol", "802.1Q"}}},
           {"/settings/vlan", Json{{"id", 1}, {"qos", 8}, {"protocol", "802.1Q"}}},
           {"/guest/port",
            Json{{"index", 256}, {"address", "0000:00:04.0"}, {"multifunction", false}}},
           {"/edits", Json::array({Json{
                          {"setting", "a b"}, {"place", "cpu"}, {"elements", Json::array()}}})}}) {
    Json json = valid;
    json[Json::json_pointer(member)] = value;
    EXPECT_THAT(leaseFailure(json.dump()), HasSubstr("has an invalid value")) << member << value;
  }
}

}  // namespace
}  // namespace vfpass::state
