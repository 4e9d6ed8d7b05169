#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::report {
namespace {

std::string writtenDoctor(const std::vector<Diagnosis>& diagnoses, const Style& style,
                          ListedChecks listed = ListedChecks::none) {
  std::ostringstream out;
  writeDoctor(out, diagnoses, listed, style);
  return out.str();
}

std::vector<Diagnosis> diagnoses() {
  return {{{"iommu", "", Outcome::passed, "IOMMU groups", "71 groups", ""}, "VFIO needs it"},
          {{"ats", "mlx5_0", Outcome::passed, "the ATS capability", "there", ""}, "direct traffic"},
          {{"ats", "mlx5_1", Outcome::failed, "the ATS capability", "off in the firmware",
            "mstconfig -d 0000:03:00.0 set ATS_ENABLED=1, then reboot"},
           "direct traffic"},
          {{"acs", "rail 0", Outcome::failed, "1x111x1", "0011101", "pci=config_acs=..."}, "both"},
          {{"acs", "rail 1", Outcome::failed, "1x111x1", "0000000", "pci=config_acs=..."}, "both"},
          {{"acs", "rail 2", Outcome::failed, "1x111x1", "0011101", "pci=config_acs=..."}, "both"},
          {{"gpu-driver", "0000:04:00.0", Outcome::notObservable, "nobody", "x\x1b[2J", "fuser"},
           "it hangs"},
          {{"opensm", "", Outcome::waived, "", "no InfiniBand port", ""}, "VFs stay down"}};
}

TEST(DoctorReport, Text) {
  expectGolden("doctor.txt", writtenDoctor(diagnoses(), {}, ListedChecks::all));
}

TEST(DoctorReport, ProblemsOnly) {
  expectGolden("doctor_problems.txt", writtenDoctor(diagnoses(), {}));
}

TEST(DoctorReport, Json) {
  const std::string text = writtenDoctor(diagnoses(), {.json = true});
  expectGolden("doctor.json", text);
  expectValid("doctor", text);
}

TEST(DoctorReport, WarningIsNoFailure) {
  const std::vector<Diagnosis> warning{
      {{"gpu-bar", "0000:08:00.0", Outcome::warning, "a 64-bit memory BAR", "32-bit", "firmware"},
       "RDMA"}};
  const std::string text = writtenDoctor(warning, {});
  EXPECT_TRUE(
      text.starts_with("ready: 0 checks failed, 0 passed, 0 not observable, 0 waived, 1 "
                       "with warnings\n\nwarning: gpu-bar, 0000:08:00.0\n"))
      << text;
  const std::string json = writtenDoctor(warning, {.json = true});
  EXPECT_NE(json.find("\"result\": \"passed\""), std::string::npos);
  EXPECT_NE(json.find("\"result\": \"warning\""), std::string::npos);
  expectValid("doctor", json);
}

TEST(DoctorReport, AcceptedFindingIsVisibleAndNoFailure) {
  std::vector<Diagnosis> found{{{"acs", "rail 0", Outcome::failed, "1x111x1", "0011101", "reboot"},
                                "both",
                                Acceptance{"bare\x1b metal", "2027-01-31", false}}};
  const std::string text = writtenDoctor(found, {});
  EXPECT_TRUE(text.starts_with(
      "ready: 0 checks failed, 0 passed, 0 not observable, 0 waived, 1 accepted\n\naccepted: acs, "
      "rail 0\n"))
      << text;
  EXPECT_NE(text.find("\n  accepted until 2027-01-31: bare\\x1b metal\n"), std::string::npos)
      << text;
  const std::string json = writtenDoctor(found, {.json = true});
  EXPECT_NE(json.find("\"result\": \"passed\""), std::string::npos);
  EXPECT_NE(json.find("\"expired\": false"), std::string::npos);
  expectValid("doctor", json);
}

TEST(DoctorReport, ExpiredAcceptanceIsNamedAndFails) {
  const std::vector<Diagnosis> found{{{"acs", "rail 0", Outcome::failed, "1x111x1", "0011101", "x"},
                                      "both",
                                      Acceptance{"bare metal", "2027-01-31", true}},
                                     {{"acs", "rail 1", Outcome::failed, "1x111x1", "0011101", "x"},
                                      "both",
                                      Acceptance{"bare metal", "2027-02-31", false}}};
  const std::string text = writtenDoctor(found, {});
  EXPECT_TRUE(text.starts_with("not ready: 1 check failed,")) << text;
  EXPECT_NE(text.find("\n  the acceptance ended on 2027-01-31: bare metal\n"), std::string::npos);
  const std::string json = writtenDoctor(found, {.json = true});
  EXPECT_NE(json.find("\"result\": \"failed\",\n  \"findings\""), std::string::npos) << json;
  expectValid("doctor", json);
}

TEST(DoctorReport, NoProblem) {
  const std::string text = writtenDoctor({diagnoses().front()}, {});
  EXPECT_TRUE(text.starts_with("ready: 0 checks failed, 1 passed,")) << text;
  expectValid("doctor", writtenDoctor({}, {.json = true}));
}

DiagnoseReport sampleDiagnosis() {
  return {"train0",
          {{Rank::warning, "vfpass plan train0", "hard-limit", "not applied", ""},
           {Rank::problem, "vfpass status train0", "rail0", "vlan 5\x1b instead of 100",
            "run `vfpass plan train0`"},
           {Rank::unseen, "vfpass plan train0", "", "libvirt does not answer", ""}}};
}

std::string writtenDiagnosis(const DiagnoseReport& report, const Style& style) {
  std::ostringstream out;
  writeDiagnose(out, report, style);
  return out.str();
}

TEST(DiagnoseReport, ProblemsComeFirst) {
  EXPECT_EQ(writtenDiagnosis(sampleDiagnosis(), {}),
            "problem: rail0: vlan 5\\x1b instead of 100\n"
            "  from:     vfpass status train0\n"
            "  remedy:   run `vfpass plan train0`\n"
            "not observable: libvirt does not answer\n"
            "  from:     vfpass plan train0\n"
            "warning: hard-limit: not applied\n"
            "  from:     vfpass plan train0\n"
            "\n"
            "first problem: rail0: vlan 5\\x1b instead of 100\n");
}

TEST(DiagnoseReport, NoProblemIsNone) {
  EXPECT_EQ(writtenDiagnosis({"train0", {}}, {}), "first problem: none\n");
}

TEST(DiagnoseReport, JsonIsValid) {
  expectValid("diagnose", writtenDiagnosis(sampleDiagnosis(), {.json = true}));
  expectValid("diagnose", writtenDiagnosis({"train0", {}}, {.json = true}));
}

}  // namespace

}  // namespace vfpass::report
