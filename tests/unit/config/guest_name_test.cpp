#include <gmock/gmock.h>

#include "support.hpp"

namespace vfpass::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> nameProblems(const std::string& name, const std::string& rest = "") {
  return readMappingText(withVf("guest: {name: " + name + "}\n" + rest)).problems;
}

TEST(GuestName, ReadsName) {
  const ReadMapping read = readMappingText(withVf("guest: {name: rail0}"));
  EXPECT_THAT(read.problems, IsEmpty());
  ASSERT_EQ(read.mapping.vfs.size(), 1U);
  EXPECT_EQ(read.mapping.vfs[0].guest.name, "rail0");
}

TEST(GuestName, AcceptsNamesThatNobodyElseGives) {
  for (const char* name :
       {"rail0", "a", "abcdefghijklmno", "storage_1", "roce-a", "ethernet0", "ib", "enable1",
        "english", "slot0", "net0", "allow", "wlanx", "eth0a"}) {
    EXPECT_THAT(nameProblems(name), IsEmpty()) << name;
  }
}

TEST(GuestName, RefusesNamesThatKernelOrToolsRefuse) {
  for (const char* name :
       {"abcdefghijklmnop", "\"\"", "\".\"", "\"..\"", "a/b", "\"a:b\"", "\"a b\"", "0", "\"-a\"",
        "\"_a\"", "\"a%d\"", "\"rail0.100\"", "räil"}) {
    EXPECT_THAT(nameProblems(name), ElementsAre(HasSubstr("expected an interface name of 1 to 15")))
        << name;
  }
}

TEST(GuestName, RefusesNamesOfTheKernel) {
  for (const char* name : {"eth0", "eth12", "ib0", "wlan0", "usb0", "bond0", "tun3", "veth1"}) {
    EXPECT_THAT(nameProblems(name),
                ElementsAre(HasSubstr("the kernel may give it to another interface")))
        << name;
  }
  for (const char* name : {"all", "default", "lo", "bonding_masters"}) {
    EXPECT_THAT(nameProblems(name), ElementsAre(HasSubstr("it is reserved"))) << name;
  }
}

TEST(GuestName, RefusesNamesOfUdev) {
  for (const char* name : {"ens5", "eno1", "enp1s0", "enp1s0f0np0", "enP2p1s0", "enx525400123456",
                           "end0", "ibs7", "ibp1s0", "wlp3s0", "slc1", "wwp0s20"}) {
    EXPECT_THAT(nameProblems(name), ElementsAre(HasSubstr("udev may give it to another interface")))
        << name;
  }
}

TEST(GuestName, RefusesInfinibandAndTeamedVf) {
  EXPECT_THAT(nameProblems("rail0", "infiniband: {}\n"),
              ElementsAre(HasSubstr("an InfiniBand VF cannot be named")));
  EXPECT_THAT(nameProblems("rail0", "teaming: {with: net0}\n"),
              ElementsAre(HasSubstr("a teamed VF cannot be named")));
}

TEST(GuestName, IsUniqueWithinVm) {
  const std::string second = "  - {name: rail1, pf: {netdev: ens2f0np0}, guest: {name: fast0}}\n";
  const ReadMapping read = readMappingText(
      "version: 1\nvm: train0\nvfs:\n"
      "  - {name: rail0, pf: {netdev: ens1f0np0}, guest: {name: fast0}}\n" +
      second);
  EXPECT_THAT(read.problems,
              ElementsAre(HasSubstr("interface name fast0 already belongs to rail0 (m.yaml:4:5)")));
}

TEST(GuestName, MayBeTheSameInAnotherVm) {
  const auto mapping = [](const std::string& vm, const std::string& pf) {
    return readMappingText("version: 1\nvm: " + vm + "\nvfs:\n  - {name: rail0, pf: {netdev: " +
                           pf + "}, guest: {name: fast0}}\n")
        .mapping;
  };
  EXPECT_THAT(crossCheck({mapping("train0", "ens1f0np0"), mapping("train1", "ens2f0np0")}),
              IsEmpty());
}

}  // namespace
}  // namespace vfpass::config
