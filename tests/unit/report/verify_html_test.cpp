#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <sstream>

#include "vfpass/report/topology_report.hpp"
#include "vfpass/report/verify_report.hpp"

namespace vfpass::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

VerifyReport soundReport() {
  VerifyReport report;
  report.domainName = "train0";
  report.time = "2026-11-21T09:40:00Z";
  report.findings.push_back(
      {"agent", "", Outcome::passed, "an agent", "8.2.0", "", Observer::guest});
  report.findings.push_back(
      {"counters", "rail0", Outcome::passed, "1 MB", "2 MB", "", Observer::host});
  Figure figure;
  figure.subject = "rail0";
  figure.operation = "write";
  figure.memory = "host";
  figure.gigabitsPerSecond = 95;
  figure.limit = 100;
  report.figures.push_back(figure);
  return report;
}

std::string pageOf(const VerifyReport& report, const std::string& svg = "",
                   const std::vector<PastVerification>& history = {}) {
  std::ostringstream out;
  writeVerifyHtml(out, report, svg, history);
  return out.str();
}

// The body is well-formed XML, which an HTML parser reads in the same way.
pugi::xml_document bodyOf(const std::string& page) {
  const auto begin = page.find("<body>");
  const auto end = page.find("</body>");
  EXPECT_NE(begin, std::string::npos);
  EXPECT_NE(end, std::string::npos);
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(page.substr(begin, end + 7 - begin).c_str()));
  return document;
}

std::vector<std::string> headingsOf(const pugi::xml_document& body) {
  std::vector<std::string> headings;
  for (const auto& node : body.select_nodes("//h1|//h2")) {
    headings.emplace_back(node.node().text().get());
  }
  return headings;
}

TEST(VerifyHtml, HasVerdictChecksFiguresAndHistory) {
  const auto body = bodyOf(pageOf(soundReport(), "<svg><title>picture</title></svg>",
                                  {{"2026-11-20T09:40:00Z", "failed", "rail0: link: down"}}));
  EXPECT_THAT(headingsOf(body), ElementsAre("vfpass verify train0", "Checks", "Bandwidth",
                                            "Topology", "Earlier verifications"));
  EXPECT_STREQ(body.select_node("//span[@class='verdict passed']").node().text().get(), "passed");
  EXPECT_STREQ(body.select_node("//div[@class='bar good']/span").node().attribute("style").value(),
               "width:95.0%");
  EXPECT_STREQ(body.select_node("//figure/svg/title").node().text().get(), "picture");
  EXPECT_STREQ(body.select_node("//td[@class='result failed']").node().text().get(), "failed");
}

TEST(VerifyHtml, FigureAboveLimitHasNoBar) {
  VerifyReport report = soundReport();
  report.figures[0].gigabitsPerSecond = 533;
  const auto body = bodyOf(pageOf(report));
  EXPECT_FALSE(body.select_node("//div[starts-with(@class, 'bar')]"));
  EXPECT_TRUE(body.select_node("//td[.='wrong limit']"));
}

TEST(VerifyHtml, ShowsTheFirstProblemWithItsRemedy) {
  VerifyReport report = soundReport();
  report.findings.push_back(
      {"mtu", "rail1", Outcome::notObservable, "9000", "unknown", "look", Observer::guest});
  report.findings.push_back(
      {"link", "rail0", Outcome::failed, "up", "down", "ip link set up", Observer::guest});
  const auto body = bodyOf(pageOf(report));
  EXPECT_STREQ(body.select_node("//section[@class='problem']/strong").node().text().get(),
               "First problem: rail0: link");
  EXPECT_STREQ(body.select_node("//section[@class='problem']//dd[last()]").node().text().get(),
               "ip link set up");
}

TEST(VerifyHtml, GuestTextIsOnlyText) {
  const std::string hostile =
      "<script>alert(1)</script>\"'><img src=x "
      "onerror=alert(2)>&amp;\x1b[31m\xff\xfe\n</td></table>";
  VerifyReport report = soundReport();
  report.domainName = hostile;
  report.peerName = hostile;
  report.findings.push_back(
      {hostile, hostile, Outcome::failed, hostile, hostile, hostile, Observer::guest});
  Figure figure;
  figure.subject = figure.source = figure.gpu = figure.operation = hostile;
  report.figures.push_back(figure);
  report.allPairs.push_back({hostile, {{hostile, 1, 2}}, 1, 1});
  const std::string page = pageOf(report, "", {{hostile, hostile, hostile}});
  const auto body = bodyOf(page);
  EXPECT_TRUE(body.select_nodes("//script|//img|//@onerror").empty());
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  EXPECT_THAT(body.select_node("//section[@class='problem']//dd").node().text().get(),
              HasSubstr("<script>alert(1)</script>"));
  EXPECT_EQ(body.select_nodes("//table").size(), 5U)
      << "checks with a problem and without, bandwidth, all pairs, history";
}

TEST(VerifyHtml, FoldsChecksWithoutAProblem) {
  VerifyReport report = soundReport();
  report.findings.push_back({"link", "rail0", Outcome::failed, "up", "down", "", Observer::guest});
  report.findings.push_back({"nccl", "", Outcome::waived, "", "", "", Observer::guest});
  const auto body = bodyOf(pageOf(report));
  EXPECT_STREQ(body.select_node("//details/summary").node().text().get(),
               "3 checks passed or waived");
  EXPECT_EQ(body.select_nodes("//details//tbody/tr").size(), 3U);
  EXPECT_EQ(body.select_nodes("//section/div//td[@class='key']").size(), 1U);
}

TEST(VerifyHtml, ColoursBarsByTheirShare) {
  VerifyReport report = soundReport();
  report.figures.resize(3, report.figures.front());
  report.figures[1].gigabitsPerSecond = 89;
  report.figures[2].gigabitsPerSecond = 48;
  const auto body = bodyOf(pageOf(report));
  for (const char* bar : {"bar good", "bar weak", "bar bad"}) {
    EXPECT_EQ(body.select_nodes(("//div[@class='" + std::string(bar) + "']").c_str()).size(), 1U)
        << bar;
  }
}

TEST(VerifyHtml, EveryFigureHasAUnit) {
  VerifyReport report = soundReport();
  report.figures[0].messageBytes = 65536;
  Figure latency = report.figures[0];
  latency.messageBytes = 100;
  latency.medianMicroseconds = 1.84;
  report.figures.push_back(latency);
  report.figures[0].gigabitsPerSecond = 0.0123;
  const auto body = bodyOf(pageOf(report));
  std::vector<std::string> figures;
  for (const auto& cell : body.select_nodes("//td[@class='number']")) {
    figures.emplace_back(cell.node().text().get());
  }
  EXPECT_THAT(figures,
              ElementsAre("64 KiB", "0.012 Gb/s", "100.0 Gb/s", "100 B", "1.8 \u00b5s", "-"));
}

TEST(VerifyHtml, CellsNameTheirHeading) {
  const auto body = bodyOf(pageOf(soundReport()));
  EXPECT_STREQ(body.select_node("//td[@class='key']").node().attribute("data-heading").value(),
               "Check");
  EXPECT_EQ(body.select_nodes("//td[not(@data-heading)]").size(), 0U);
}

TEST(VerifyHtml, NamesHostAndVersions) {
  std::ostringstream out;
  writeVerifyHtml(out, soundReport(), "", {}, "host gpu01, vfpass 0.1.0 <b>");
  EXPECT_STREQ(bodyOf(out.str()).select_node("//p[@class='facts'][2]").node().text().get(),
               "host gpu01, vfpass 0.1.0 <b>");
}

TEST(VerifyHtml, StatesHowManyVfsSharedTheGuest) {
  VerifyReport report = soundReport();
  EXPECT_THAT(pageOf(report), Not(HasSubstr("at the same time")));
  report.concurrentVfs = 8;
  EXPECT_THAT(pageOf(report), HasSubstr("Measured with up to 8 VFs at the same time."));
  std::ostringstream text;
  writeVerify(text, report, {});
  EXPECT_THAT(text.str(), HasSubstr("measured with up to 8 VFs at the same time; --sequential"));
}

TEST(VerifyHtml, LoadsNothingAndRunsNothing) {
  const std::string page = pageOf(soundReport());
  EXPECT_THAT(page, HasSubstr("default-src 'none'; style-src 'unsafe-inline'"));
  for (const char* loading : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(loading)));
  }
}

TEST(VerifyHtml, ImpossibleShareDoesNotLeaveTheBar) {
  VerifyReport report = soundReport();
  report.figures[0].gigabitsPerSecond = 109;
  const auto body = bodyOf(pageOf(report));
  EXPECT_STREQ(body.select_node("//div[@class='bar good']/span").node().attribute("style").value(),
               "width:100.0%");
}

TEST(PastVerification, ReadsWhatWriteVerifyWrote) {
  VerifyReport report = soundReport();
  report.findings.push_back({"link", "rail0", Outcome::failed, "up", "down", "", Observer::guest});
  std::ostringstream json;
  writeVerify(json, report, {.json = true});
  const auto past = readPastVerification(json.str());
  EXPECT_EQ(past.time, "2026-11-21T09:40:00Z");
  EXPECT_EQ(past.result, "failed");
  EXPECT_EQ(past.problem, "rail0: link: down");
}

TEST(PastVerification, DamagedReportHasOnlyAProblem) {
  for (const char* text : {"", "{", "[]", "{}", R"({"result": 7})"}) {
    const auto past = readPastVerification(text);
    EXPECT_EQ(past.result, "") << text;
    EXPECT_THAT(past.problem, HasSubstr("cannot be read")) << text;
  }
}

TEST(TopologyHtml, HasPictureAndWords) {
  std::ostringstream out;
  writeTopologyHtml(out, "vfpass topo: host", "<svg><g/></svg>", "GPU0 <-> rail0\nGPU1\n");
  const auto body = bodyOf(out.str());
  EXPECT_TRUE(body.select_node("//figure/svg/g"));
  EXPECT_STREQ(body.select_node("//pre").node().text().get(), "GPU0 <-> rail0\nGPU1\n");
}

}  // namespace
}  // namespace vfpass::report
