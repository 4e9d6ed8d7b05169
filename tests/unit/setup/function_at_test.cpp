#include <gtest/gtest.h>

#include "vfpass/setup/setup_view.hpp"

namespace vfpass::setup {
namespace {

PciAddress at(const char* text) { return *parsePciAddress(text); }

// Two ports and a switch with two devices, in a guest whose firmware left gaps in the bus numbers.
SetupView view() {
  SetupView guest;
  for (const char* function :
       {"00:10.0", "00:12.0", "07:00.0", "09:00.0", "09:01.0", "0a:00.0", "0b:00.0", "20:00.0"}) {
    guest.functions.insert(at(function));
  }
  guest.behind[at("00:10.0")] = {at("07:00.0")};
  guest.behind[at("07:00.0")] = {at("09:00.0"), at("09:01.0")};
  guest.behind[at("09:00.0")] = {at("0a:00.0")};
  guest.behind[at("09:01.0")] = {at("0b:00.0")};
  guest.behind[at("00:12.0")] = {at("20:00.0")};
  return guest;
}

TEST(FunctionAtTest, TakesBusNumbersFromGuest) {
  EXPECT_EQ(functionAt(view(), {at("00:12.0"), at("01:00.0")}), at("20:00.0"));
}

TEST(FunctionAtTest, ChoosesAmongPortsOfSwitch) {
  EXPECT_EQ(functionAt(view(), {at("00:10.0"), at("02:00.0"), at("03:01.0"), at("05:00.0")}),
            at("0b:00.0"));
  EXPECT_EQ(functionAt(view(), {at("00:10.0"), at("02:00.0"), at("03:00.0"), at("04:00.0")}),
            at("0a:00.0"));
}

TEST(FunctionAtTest, FindsNoFunctionThatGuestLacks) {
  EXPECT_EQ(functionAt(view(), {}), std::nullopt);
  EXPECT_EQ(functionAt(view(), {at("00:11.0"), at("01:00.0")}), std::nullopt);
  EXPECT_EQ(functionAt(view(), {at("00:12.0"), at("01:00.1")}), std::nullopt);
  EXPECT_EQ(functionAt(view(), {at("00:12.0"), at("01:00.0"), at("02:00.0")}), std::nullopt);
}

}  // namespace
}  // namespace vfpass::setup
