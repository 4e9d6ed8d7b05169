#include "vfpass/report/command_reports.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"

namespace vfpass::report {
namespace {

GuestSetupReport sampleGuestSetup() {
  GuestSetupReport report;
  report.domainName = "train0";
  report.tool = "NetworkManager";
  report.files = {{"/etc/nccl.conf", "what the mapping says of NCCL", true, true, "0644 -> 0600",
                   "@@ -1 +1,2 @@\n+NCCL_IB_SL=0\n NCCL_DEBUG=\x1b[2J\n"},
                  {"/etc/sysctl.d/90-vfpass.conf", "several RoCE ports in one guest", false, true,
                   "", "@@ -0,0 +1 @@\n+x\n"},
                  {"/etc/modules-load.d/vfpass.conf", "not there before", true, false, "",
                   "@@ -1 +0,0 @@\n-x\n"}};
  report.ports = {{"rail0", "ens7", {"mtu 1500 -> 9000", "address +192.168.100.10/24"}}};
  report.actions = {"load nvidia_peermem"};
  report.notes = {"/etc/nccl.conf: `NCCL_IB_TC=\x1b[0m` does not count any more"};
  return report;
}

std::string text(const GuestSetupReport& report, const Style& style) {
  std::ostringstream out;
  writeGuestSetup(out, report, style);
  return out.str();
}

TEST(GuestSetupReportTest, Text) { expectGolden("guest-setup.txt", text(sampleGuestSetup(), {})); }

TEST(GuestSetupReportTest, Json) {
  const std::string json = text(sampleGuestSetup(), {.json = true});
  expectGolden("guest-setup.json", json);
  expectValid("guest-setup", json);
}

TEST(GuestSetupReportTest, NothingToDo) {
  GuestSetupReport report;
  report.domainName = "evil\nname";
  report.tool = "ip";
  report.notes = {"a note"};
  EXPECT_EQ(text(report, {}), "guest-setup evil\\x0aname: nothing to do\nnote: a note\n");
  report.undo = true;
  EXPECT_EQ(text(report, {}), "guest-setup --undo evil\\x0aname: nothing to do\nnote: a note\n");
  expectValid("guest-setup", text(report, {.json = true}));
}

}  // namespace
}  // namespace vfpass::report
