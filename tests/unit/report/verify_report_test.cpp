#include "vfpass/report/verify_report.hpp"

#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <sstream>

#include "golden.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::report {
namespace {

VerifyReport sampleVerify() {
  VerifyReport report;
  report.domainName = "train0";
  report.time = "2026-11-21T09:40:00Z";
  report.findings = {
      {"agent", "", Outcome::passed, "the guest's agent runs programs", "it does", ""},
      seenByHost({"counters", "rail0", Outcome::notObservable, "the counters move", "no counters",
                  "a newer driver"}),
      {"mac", "rail1", Outcome::failed, "MAC 52:54:00:aa:bb:cc", "eth1 \x1b[2J <&\">", "lspci -k"},
      {"gpu-distance", "rail0", Outcome::warning, "PIX or PXB", "PHB to GPU 0",
       "topology: <mirror>"},
      {"gpu", "", Outcome::waived, "", "the guest has no GPU", ""}};
  Figure host{"rail0", "write", "host", 65536, 65536000, 97.25, {}, {}};
  host.limit = 98;
  Figure gpu = host;
  gpu.memory = "gpu";
  gpu.gpu = "gpu0";
  gpu.gigabitsPerSecond = 82;
  gpu.besideHost = 97.5;
  gpu.relaxedOrdering = true;
  report.figures = {host,
                    gpu,
                    {"rail0", "read", "host", 8, 8000, 0, 2.125, 3.5},
                    {"rail0", "write", "host", 65536, 0, 96.5, {}, {}, "ib_write_bw"}};
  report.baselines = {{"rail0",
                       "2026-11-20T08:00:00Z",
                       {{"write", "host", "", 97.25, 98.5}, {"write", "gpu", "gpu0", 82, 97.5}},
                       {{"pcie-link", "Gen5 x4 \x1b", "reseat the card"}, {"kernel", "6.12", ""}}}};
  return report;
}

std::string text(const VerifyReport& report, const Style& style) {
  std::ostringstream out;
  writeVerify(out, report, style);
  return out.str();
}

TEST(VerifyReportTest, TextBeginsWithTheFirstFailure) {
  expectGolden("verify.txt", text(sampleVerify(), {}));
}

TEST(VerifyReportTest, FigureAboveLimitHasNoShareOfIt) {
  VerifyReport report = sampleVerify();
  report.figures[0].gigabitsPerSecond = 386;
  report.figures[0].limit = 72.5;
  EXPECT_NE(text(report, {}).find("wrong limit"), std::string::npos);
  EXPECT_EQ(text(report, {}).find("532 %"), std::string::npos);
  report.figures[0].gigabitsPerSecond = 78;
  EXPECT_EQ(text(report, {}).find("wrong limit"), std::string::npos) << "not measured exactly";
}

TEST(VerifyReportTest, SizesHaveTheirOwnTable) {
  VerifyReport report = sampleVerify();
  report.figures = {};
  for (const char* operation : {"write", "read"}) {
    Figure figure{"rail0", operation, "host", 2, 32, operation == std::string("read") ? 0.25 : 0.5};
    figure.source = sizeFigures;
    report.figures.push_back(figure);
    figure.messageBytes = 4096;
    report.figures.push_back(figure);
  }
  const std::string written = text(report, {});
  EXPECT_EQ(written.find("OF LIMIT"), std::string::npos);
  const auto table = written.find("WRITE GBIT/S  READ GBIT/S");
  ASSERT_NE(table, std::string::npos) << written;
  EXPECT_NE(written.find("0.500         0.250", table), std::string::npos) << written;
  EXPECT_LT(written.find(" 2 ", table), written.find("4096", table));
  expectValid("verify", text(report, {.json = true}));
}

TEST(VerifyReportTest, FiguresOfNcclAreValid) {
  VerifyReport report = sampleVerify();
  report.figures = {};
  for (const char* operation : {"all-reduce", "all-gather"}) {
    Figure figure{"", operation, "gpu", std::uint64_t{1} << 30U, 4096, 1360};
    figure.source = "vfpass-probe nccl";
    report.figures.push_back(figure);
  }
  report.figures[1].limit = 1600;
  const std::string json = text(report, {.json = true});
  EXPECT_NE(json.find("all-gather"), std::string::npos);
  expectValid("verify", json);
}

TEST(VerifyReportTest, Json) {
  const std::string json = text(sampleVerify(), {.json = true});
  expectGolden("verify.json", json);
  expectValid("verify", json);
  EXPECT_EQ(lastVerification(json), "failed, 2026-11-21T09:40:00Z");
}

TEST(VerifyReportTest, BoundsTextsOfGuest) {
  VerifyReport report = sampleVerify();
  const Finding flood{"mac", "rail1", Outcome::failed, "MAC", std::string(3U << 20U, '\x01'), "x"};
  report.findings.insert(report.findings.end(), 200, flood);
  report.findings[0].seen = std::string(1023, 'a') + "\xc3\xa4 and more";
  report.baselines[0].factors[0].seen = std::string(4096, 'b');
  boundTexts(report);
  EXPECT_LT(report.baselines[0].factors[0].seen.size(), 2048U);
  EXPECT_EQ(report.findings[0].seen, std::string(1023, 'a') + " (11 more bytes)");
  EXPECT_EQ(report.findings[1].seen, "no counters");
  const std::string json = text(report, {.json = true});
  EXPECT_LT(json.size(), 1U << 20U);
  EXPECT_EQ(lastVerification(json), "failed, 2026-11-21T09:40:00Z");
}

TEST(VerifyReportTest, Junit) {
  std::ostringstream out;
  writeVerifyJunit(out, sampleVerify());
  expectGolden("verify.junit.xml", out.str());
}

TEST(VerifyReportTest, UntrustedTextInJunitIsWellFormed) {
  VerifyReport report = sampleVerify();
  report.domainName = "\x1b\xff\xef\xbf\xbe<\"";
  report.findings = {{"mac", "a\nb", Outcome::failed, "<", "\x01", "]]>\x7f\xef\xbf\xbf"}};
  std::ostringstream out;
  writeVerifyJunit(out, report);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(out.str().c_str()));
  const auto suite = document.child("testsuite");
  EXPECT_STREQ(suite.attribute("name").value(), "vfpass verify \\x1b\\xff?<\"");
  const auto testCase = suite.child("testcase");
  EXPECT_STREQ(testCase.attribute("name").value(), "a\\x0ab.mac");
  EXPECT_STREQ(testCase.child("failure").attribute("message").value(), "expected <, found \\x01");
  EXPECT_STREQ(testCase.child_value("failure"), "]]>\\x7f?");
}

TEST(VerifyReportTest, InvalidSavedReportIsIgnored) {
  EXPECT_EQ(lastVerification(std::nullopt), std::nullopt);
  EXPECT_EQ(lastVerification("{"), std::nullopt);
  EXPECT_EQ(lastVerification("[]"), std::nullopt);
  EXPECT_EQ(lastVerification(R"({"result": 7, "time": "now"})"), std::nullopt);
}

TEST(VerdictTest, UnobservableCheckIsNoPass) {
  VerifyReport report;
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  report.findings = {{"gpu", "", Outcome::waived, "", "", ""}};
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  report.findings.push_back({"agent", "", Outcome::passed, "", "", ""});
  EXPECT_EQ(verdict(report), Outcome::passed);
  report.findings.push_back({"mtu", "", Outcome::warning, "", "", ""});
  EXPECT_EQ(verdict(report), Outcome::passed) << "a warning is no failure";
  report.findings.push_back({"counters", "", Outcome::notObservable, "", "", ""});
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  report.findings.push_back({"mac", "", Outcome::failed, "", "", ""});
  EXPECT_EQ(verdict(report), Outcome::failed);
}

}  // namespace
}  // namespace vfpass::report
