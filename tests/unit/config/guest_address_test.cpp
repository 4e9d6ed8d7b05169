#include "readers.hpp"

#include <gtest/gtest.h>

namespace vfpass::config {
namespace {

TEST(GuestAddress, AcceptsAddressesOfOneInterface) {
  for (const char* good : {"192.168.100.10/24", "10.0.0.0/31", "10.0.0.1/32", "fe80::1/64",
                           "2001:db8::10/128", "10.0.0.255/16"}) {
    EXPECT_EQ(guestAddressFault(good), std::nullopt) << good;
  }
}

TEST(GuestAddress, RefusesInvalidNetworkBroadcastAndMulticastAddresses) {
  for (const char* bad :
       {"", "/", "10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/0", "10.0.0.1/-1", "10.0.0/24",
        "10.0.0.256/24", "10.0.0.0/24", "10.0.0.255/24", "0.0.0.0/8", "224.0.0.1/24", "::/64",
        "ff02::1/64", "fe80::1/129", "fe80::1%eth0/64", "10.0.0.1/24/24",
        "10.0.0.1/99999999999999999999999"}) {
    EXPECT_TRUE(guestAddressFault(bad)) << bad;
  }
}

}  // namespace
}  // namespace vfpass::config
