#include "rdma/ip_address.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace vfpass::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<IpAddress> addresses(const std::vector<std::string>& texts) {
  std::vector<IpAddress> list;
  for (const std::string& text : texts) {
    list.push_back(parseIpAddress(text).value());
  }
  return list;
}

std::string chosen(const std::vector<std::string>& own, const std::vector<std::string>& peer) {
  const auto pair = chooseAddresses(addresses(own), addresses(peer));
  return pair ? toString(pair->own) + " " + toString(pair->peer) : "none";
}

TEST(IpAddress, ReadsWhatItWrites) {
  for (const char* text : {"10.99.0.1/24", "2001:db8::1/64", "192.0.2.7/32"}) {
    EXPECT_EQ(networkText(parseIpAddress(text).value()), text);
  }
  EXPECT_EQ(networkText(parseIpAddress("10.99.0.1").value()), "10.99.0.1/32");
}

TEST(IpAddress, RefusesOthers) {
  for (const char* text : {"", "host", "10.0.0.1/33", "10.0.0.1/", "10.0.0.1/x", "fe80::1/64",
                           "169.254.1.1/16", "224.0.0.1", "ff02::1", "0.0.0.0", "::"}) {
    EXPECT_FALSE(parseIpAddress(text)) << text;
  }
}

TEST(ChooseAddresses, PrefersOneNetworkThenIpv4) {
  EXPECT_EQ(chosen({"10.0.0.1/24", "10.0.1.1/24"}, {"10.0.1.2/24"}), "10.0.1.1 10.0.1.2");
  EXPECT_EQ(chosen({"2001:db8::1/64", "10.0.0.1/24"}, {"2001:db8::2/64", "10.0.0.2/24"}),
            "10.0.0.1 10.0.0.2");
  EXPECT_EQ(chosen({"2001:db8::1/64", "10.0.0.1/24"}, {"2001:db8::2/64", "10.0.9.2/24"}),
            "2001:db8::1 2001:db8::2");
  EXPECT_EQ(chosen({"10.0.0.1/24"}, {"10.0.9.2/24"}), "10.0.0.1 10.0.9.2") << "over a router";
  EXPECT_EQ(chosen({"10.0.0.1/25"}, {"10.0.0.2/24"}), "10.0.0.1 10.0.0.2");
}

TEST(ChooseAddresses, NeedsOneFamily) {
  EXPECT_EQ(chosen({"10.0.0.1/24"}, {"2001:db8::2/64"}), "none");
  EXPECT_EQ(chosen({}, {"10.0.0.1/24"}), "none");
}

TEST(AddressesOf, ReadsThoseOfInterface) {
  std::vector<std::string> found;
  for (const IpAddress& each : addressesOf({"lo"})) {
    found.push_back(networkText(each));
  }
  EXPECT_THAT(found, testing::Contains("127.0.0.1/8"));
  EXPECT_THAT(addressesOf({"no-such-interface"}), IsEmpty());
}

TEST(NetdevsOf, FollowGidsOnEthernetAndFunctionOnInfiniband) {
  const std::filesystem::path root = testing::TempDir() + "/netdevs-of";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "sys/class/infiniband/mlx5_0/device/net/ib0");
  std::filesystem::create_directories(root / "sys/class/infiniband/mlx5_0/device/net/ib1");
  for (const char* number : {"0", "1"}) {
    const auto folder = root / "sys/class/net" / (std::string("ib") + number);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "dev_port") << number << '\n';
  }
  const SysfsReader sysfs(root);
  RdmaDevice device;
  device.name = "mlx5_0";
  RdmaPort port;
  port.linkLayer = "InfiniBand";
  port.number = 2;
  EXPECT_THAT(netdevsOf(sysfs, device, port), ElementsAre("ib1"));
  port.linkLayer = "Ethernet";
  port.gids = {{0, "", "", "eth1"}, {1, "", "", "eth1"}, {2, "", "", "eth1.5"}};
  EXPECT_THAT(netdevsOf(sysfs, device, port), ElementsAre("eth1", "eth1.5"));
}

}  // namespace
}  // namespace vfpass::probe
