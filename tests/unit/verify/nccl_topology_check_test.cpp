#include "vfpass/verify/verify_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "fake/local_guest.hpp"

namespace vfpass::verify {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class NcclTopologyCheckTest : public testing::Test {
 protected:
  Finding check() {
    return checkNcclTopology(agent, "`vfpass guest-setup train0`", devices, conf, daemonFile);
  }
  static void write(const std::string& file, const std::string& text) {
    std::ofstream(file) << text;
  }

  fake::LocalGuest guest;
  agent::Agent agent{guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(60)};
  std::vector<PciAddress> devices;
  std::string conf = guest.folder / "nccl.conf";
  std::string daemonFile = guest.folder / "virtualTopology.xml";
  std::string ours = guest.folder / "nccl-topology.xml";
};

TEST_F(NcclTopologyCheckTest, WarnsWithoutTopologyFile) {
  const Finding finding = check();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.remedy, HasSubstr("run `vfpass guest-setup train0`"));
}

TEST_F(NcclTopologyCheckTest, FindsFileNamedInNcclConf) {
  write(conf, "NCCL_DEBUG=INFO\nNCCL_TOPO_FILE=" + ours + "\n");
  EXPECT_EQ(check().outcome, Outcome::warning) << "the named file does not exist";
  write(ours, "<system version=\"1\"/>");
  EXPECT_EQ(check().outcome, Outcome::passed);
  EXPECT_THAT(check().seen, EndsWith("nccl-topology.xml"));
}

TEST_F(NcclTopologyCheckTest, WarnsIfFileIsOfOtherDevices) {
  devices = {*parsePciAddress("0000:05:00.0"), *parsePciAddress("0000:06:00.0")};
  write(conf, "NCCL_TOPO_FILE=" + ours + "\n");
  write(ours,
        "<system version=\"1\"><cpu><pci busid=\"0000:05:00.0\"/>"
        "<pci busid=\"0000:07:00.0\"/>\n<pci busid=\"x\"/></cpu></system>");
  const Finding finding = check();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.seen, HasSubstr("nccl-topology.xml lacks 0000:06:00.0:"));
  EXPECT_THAT(finding.remedy, HasSubstr("`vfpass guest-setup train0`"));
  devices.pop_back();
  EXPECT_EQ(check().outcome, Outcome::passed);
}

TEST_F(NcclTopologyCheckTest, FindsFileOfNvidiaTopologyd) {
  write(daemonFile, "<system version=\"1\"/>");
  EXPECT_EQ(check().outcome, Outcome::passed);
}

}  // namespace
}  // namespace vfpass::verify
