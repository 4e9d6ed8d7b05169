#include "vfpass/report/verify_report.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"

namespace vfpass::report {
namespace {

VerifyReport sample() {
  VerifyReport report;
  report.domainName = "train0";
  report.time = "2026-11-21T09:40:00Z";
  report.findings = {
      {"agent", "", Outcome::passed, "the guest's agent runs programs", "it does", ""},
      {"counters", "rail0", Outcome::notObservable, "the counters move", "no counters",
       "a newer driver"},
      {"mac", "rail1", Outcome::failed, "MAC 52:54:00:aa:bb:cc", "eth1 \x1b[2J <&\">", "lspci -k"},
      {"gpu", "", Outcome::waived, "", "the guest has no GPU", ""}};
  report.figures = {{"rail0", "write", "host", 65536, 65536000, 97.25, {}, {}}};
  return report;
}

std::string text(const VerifyReport& report, const Style& style) {
  std::ostringstream out;
  writeVerify(out, report, style);
  return out.str();
}

TEST(VerifyReportTest, TextNamesTheFirstFailureFirst) {
  expectGolden("verify.txt", text(sample(), {}));
}

TEST(VerifyReportTest, Json) {
  const std::string json = text(sample(), {.json = true});
  expectGolden("verify.json", json);
  expectValid("verify", json);
  EXPECT_EQ(lastVerification(json), "failed, 2026-11-21T09:40:00Z");
}

TEST(VerifyReportTest, Junit) {
  std::ostringstream out;
  writeVerifyJunit(out, sample());
  expectGolden("verify.junit.xml", out.str());
}

TEST(VerifyReportTest, ARuinedKeptReportIsNone) {
  EXPECT_EQ(lastVerification(std::nullopt), std::nullopt);
  EXPECT_EQ(lastVerification("{"), std::nullopt);
  EXPECT_EQ(lastVerification("[]"), std::nullopt);
  EXPECT_EQ(lastVerification(R"({"result": 7, "time": "now"})"), std::nullopt);
}

TEST(VerdictTest, WhatWasNotSeenIsNoPassAndNoFindingsAreNone) {
  VerifyReport report;
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  report.findings = {{"gpu", "", Outcome::waived, "", "", ""}};
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  report.findings.push_back({"agent", "", Outcome::passed, "", "", ""});
  EXPECT_EQ(verdict(report), Outcome::passed);
  report.findings.push_back({"counters", "", Outcome::notObservable, "", "", ""});
  EXPECT_EQ(verdict(report), Outcome::notObservable);
  report.findings.push_back({"mac", "", Outcome::failed, "", "", ""});
  EXPECT_EQ(verdict(report), Outcome::failed);
}

}  // namespace
}  // namespace vfpass::report
