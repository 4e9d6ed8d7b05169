#include "transfer/rdma_cm_session.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "channel/channel.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

std::string roundTrip(const Json& addresses) {
  return toJson(addressesFromJson(readerOf(addresses))).dump();
}

TEST(RdmaCmOffer, RoundTripsThroughJson) {
  EXPECT_EQ(roundTrip({"10.99.0.1/24", "2001:db8::1/64"}), R"(["10.99.0.1/24","2001:db8::1/64"])");
  EXPECT_EQ(roundTrip(Json::array()), "[]");
}

TEST(RdmaCmOffer, RefusesWhatIsNoListOfAddresses) {
  for (const Json& each :
       {Json("10.99.0.1"), Json::array({1}), Json::array({"fe80::1"}),
        Json::array({"10.99.0.1/99"}), Json(std::vector<std::string>(65, "::2"))}) {
    EXPECT_THROW(roundTrip(each), Error) << each;
  }
  EXPECT_THROW(addressesFromJson(readerOf(Json::object())["addresses"]), Error);
}

TEST(RdmaCmOwnAddresses, AreTheGivenOneOrThoseOfThePort) {
  Resources resources;
  resources.port.device = "no-such-device";
  EXPECT_THROW(ownAddresses(resources), Error);
  resources.ipAddress = "10.99.0.1";
  EXPECT_EQ(toJson(ownAddresses(resources)).dump(), R"(["10.99.0.1/32"])");
  resources.ipAddress = "fe80::1";
  EXPECT_THROW(ownAddresses(resources), Error);
}

}  // namespace
}  // namespace vfpass::probe
