#include "vfpass/verify/verify_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "fake/local_guest.hpp"
#include "unit/values.hpp"

namespace vfpass::verify {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class NcclTopologyCheckTest : public testing::Test {
 protected:
  Finding check() {
    return judgeNcclTopology(agent, "`vfpass guest-setup train0`", devices, conf, daemonFile);
  }
  static void write(const std::string& file, const std::string& text) {
    std::ofstream(file) << text;
  }

  fake::LocalGuest guest;
  agent::Agent agent{guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(60)};
  std::vector<NcclFileDevice> devices;
  std::string conf = guest.folder / "nccl.conf";
  std::string daemonFile = guest.folder / "virtualTopology.xml";
  std::string ours = guest.folder / "nccl-topology.xml";
};

TEST_F(NcclTopologyCheckTest, WarnsWithoutTopologyFile) {
  const Finding finding = check();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.remedy, HasSubstr("run `vfpass guest-setup train0`"));
}

TEST_F(NcclTopologyCheckTest, JudgesTheFileOfAGuestThatNeedsNone) {
  const auto judged = [&] { return judgeNcclFile(agent, "a command", devices, conf, daemonFile); };
  devices = {{at("0000:05:00.0")}};
  EXPECT_EQ(judged(), std::nullopt);
  write(daemonFile, "<system version=\"1\"><pci busid=\"0000:06:00.0\"/></system>");
  ASSERT_TRUE(judged());
  EXPECT_EQ(judged()->outcome, Outcome::warning);
}

TEST_F(NcclTopologyCheckTest, FindsFileNamedInNcclConf) {
  write(conf, "NCCL_DEBUG=INFO\nNCCL_TOPO_FILE=" + ours + "\n");
  EXPECT_EQ(check().outcome, Outcome::warning) << "the named file does not exist";
  write(ours, "<system version=\"1\"/>");
  EXPECT_EQ(check().outcome, Outcome::passed);
  EXPECT_THAT(check().seen, EndsWith("nccl-topology.xml"));
}

TEST_F(NcclTopologyCheckTest, WarnsIfFileIsOfOtherDevices) {
  devices = {{at("0000:05:00.0")}, {at("0000:06:00.0")}};
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

// A slot or a card that changed since guest-setup, a file of another machine, a file by hand.
TEST_F(NcclTopologyCheckTest, WarnsIfFileHasOtherLinksThanTheHost) {
  devices = {{at("0000:05:00.0"), {32000, 16}}, {at("0000:06:00.0"), {2500, 8}}};
  write(conf, "NCCL_TOPO_FILE=" + ours + "\n");
  const auto writeLinks = [&](const std::string& gpu, const std::string& nic) {
    write(ours, "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"0000:05:00.0\" " + gpu +
                    "/>\n<pci busid=\"0000:06:00.0\" " + nic + "/>\n</cpu>\n</system>\n");
  };
  const std::string gpu = "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"";
  const std::string nic = "link_speed=\"2.5 GT/s PCIe\" link_width=\"8\"";
  writeLinks(gpu, nic);
  EXPECT_EQ(check().outcome, Outcome::passed);
  writeLinks("link_speed=\"16.0 GT/s PCIe\" link_width=\"32\"", nic);
  EXPECT_EQ(check().outcome, Outcome::passed) << "the same for NCCL";
  writeLinks("link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"", "link_width=\"8\"");
  const Finding finding = check();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.seen,
              EndsWith("nccl-topology.xml has 0000:05:00.0 at 16 GT/s x16, on the host 32 GT/s "
                       "x16; 0000:06:00.0 without a link, on the host 2.5 GT/s x8: NCCL plans with "
                       "the file's links"));
  EXPECT_THAT(finding.remedy, HasSubstr("`vfpass guest-setup train0`"));
  for (const char* wrong : {"nan", "inf GT/s", "-32.0 GT/s", "1e9 GT/s", "fast"}) {
    writeLinks("link_speed=\"" + std::string(wrong) + "\" link_width=\"16\"", nic);
    EXPECT_THAT(check().seen, HasSubstr("0000:05:00.0 without a link")) << wrong;
  }
  devices = {{at("0000:05:00.0")}};
  EXPECT_EQ(check().outcome, Outcome::passed) << "the host's link is unknown";
}

TEST_F(NcclTopologyCheckTest, FindsFileOfNvidiaTopologyd) {
  write(daemonFile, "<system version=\"1\"/>");
  EXPECT_EQ(check().outcome, Outcome::passed);
}

}  // namespace
}  // namespace vfpass::verify
