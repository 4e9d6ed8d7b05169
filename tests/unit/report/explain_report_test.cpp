#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "golden.hpp"
#include "vfpass/report/check_pages.hpp"

namespace vfpass::report {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* doctorSample = R"(# doctor

| word | meaning |
|---|---|
| `passed` | no key |

## Checks

| key | why | remedy |
|---|---|---|
| `acs` | isolates traffic, see [below](#acs-rules) | `grep a \| wc -l` |
| `hook` | see [libvirt.md](libvirt.md#hook) and [here](other.md) | |

Text.

| check | condition | observer |
|---|---|---|
| `one`, `two` | both | guest |

| checks | method | remedy |
|---|---|---|
| `acs`, `one`, `hook` | reads [it](#checks) | repair |

## ACS, rules

Bits are [written](#checks) so.

### More

Details.

## Next

Other.
)";

std::string documentOnDisk(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(VFPASS_SOURCE_DIR) + "/docs/" + name).rdbuf();
  return text.str();
}

TEST(CheckPages, AreRowsOfTablesOfChecks) {
  const auto pages = readCheckPages("doctor", doctorSample);
  ASSERT_THAT(pages, SizeIs(4));
  EXPECT_EQ(pages[0].key, "acs");
  EXPECT_EQ(pages[0].cause, "isolates traffic, see below");
  EXPECT_EQ(pages[0].remedy, "`grep a | wc -l`");
  EXPECT_EQ(pages[0].source, "docs/doctor.md, Checks");
  EXPECT_EQ(pages[1].cause, "see libvirt.md and here (other.md)");
  EXPECT_EQ(pages[3].key, "two");
}

TEST(CheckPages, HaveMethodsAndMissingRemedies) {
  const auto pages = readCheckPages("doctor", doctorSample);
  ASSERT_THAT(pages, SizeIs(4));
  EXPECT_EQ(pages[0].method, "reads it");
  EXPECT_EQ(pages[0].remedy, "`grep a | wc -l`") << "its own row has one";
  EXPECT_EQ(pages[1].remedy, "repair");
  EXPECT_THAT(pages[3].method, IsEmpty());
}

TEST(CheckPages, HaveSectionThatRowNames) {
  const auto pages = readCheckPages("doctor", doctorSample);
  EXPECT_EQ(pages.at(0).details, "ACS, rules\n\nBits are written so.\n\n### More\n\nDetails.\n");
  EXPECT_THAT(pages.at(1).details, IsEmpty());
}

TEST(CheckPages, AreThoseOfDocumentsOnDisk) {
  EXPECT_EQ(doctorDocument(), documentOnDisk("doctor.md"));
  EXPECT_EQ(verifyDocument(), documentOnDisk("verify.md"));
}

TEST(ExplainReport, WrapsLongTextBelowItsBeginning) {
  const std::string cause = "a" + std::string(60, 'b') + " " + std::string(60, 'c');
  std::ostringstream out;
  writeCheckPages(
      out, {{"acs", "doctor", cause, "cure", "", "docs/doctor.md, Checks", "", "looks"}}, {});
  EXPECT_THAT(out.str(),
              HasSubstr("  why:       a" + std::string(60, 'b') + "\n             cccc"));
  EXPECT_THAT(out.str(), HasSubstr("  method:    looks\n"));
  EXPECT_THAT(out.str(), HasSubstr("  remedy:    cure\n"));
}

TEST(ExplainReport, ListNamesKeyOnceForEachCommand) {
  const CheckPage page{"counters", "verify", "first; then", "", "host", "", "", ""};
  std::ostringstream out;
  writeCheckList(out, {page, page}, {});
  EXPECT_EQ(out.str().find("counters"), out.str().rfind("counters"));
}

TEST(ExplainReport, JsonIsValid) {
  std::ostringstream out;
  writeCheckList(out, allCheckPages(), {.json = true});
  expectValid("explain", out.str());
}

TEST(ExplainReport, HintNamesFirstFailureThenFirstWarning) {
  VerifyReport report;
  report.findings = {{"mtu", "rail0", Outcome::warning, "", "", ""}};
  std::ostringstream warned;
  writeExplainHint(warned, report);
  EXPECT_THAT(warned.str(), HasSubstr("`vfpass explain mtu`"));
  report.findings.push_back({"link", "rail0", Outcome::failed, "", "", ""});
  std::ostringstream failed;
  writeExplainHint(failed, report);
  EXPECT_THAT(failed.str(), HasSubstr("`vfpass explain link`"));
  report.findings = {{"link", "rail0", Outcome::passed, "", "", ""}};
  std::ostringstream passed;
  writeExplainHint(passed, report);
  EXPECT_THAT(passed.str(), IsEmpty());
}

}  // namespace
}  // namespace vfpass::report
