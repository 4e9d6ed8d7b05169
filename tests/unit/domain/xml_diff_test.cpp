#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "support.hpp"

namespace vfpass::domain {
namespace {

std::string lines(int first, int last) {
  std::string text;
  for (int line = first; line <= last; ++line) {
    text += std::to_string(line) + "\n";
  }
  return text;
}

TEST(XmlDiff, IsEmptyForEqualTexts) {
  EXPECT_EQ(xmlDiff("", ""), "");
  EXPECT_EQ(xmlDiff("a\nb\n", "a\nb\n"), "");
}

TEST(XmlDiff, ShowsThreeLinesOfContext) {
  EXPECT_EQ(xmlDiff(lines(1, 9), lines(1, 4) + "new\n" + lines(6, 9)),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+new\n 6\n 7\n 8\n");
}

TEST(XmlDiff, FormatsEmptyAndSingleRangesLikeDiff) {
  EXPECT_EQ(xmlDiff("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(xmlDiff("a\nb\n", ""), "@@ -1,2 +0,0 @@\n-a\n-b\n");
}

TEST(XmlDiff, JoinsNearbyChangesOnly) {
  const auto before = lines(1, 30);
  const auto changed = [&](int first, int second) {
    return replaced(replaced(before, "\n" + std::to_string(first) + "\n", "\nx\n"),
                    "\n" + std::to_string(second) + "\n", "\ny\n");
  };
  const auto hunks = [&](const std::string& after) {
    const auto text = xmlDiff(before, after);
    std::size_t count = 0;
    for (auto at = text.find("@@ -"); at != std::string::npos; at = text.find("@@ -", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(hunks(changed(10, 17)), 1U);
  EXPECT_EQ(hunks(changed(10, 18)), 2U);
}

TEST(XmlDiff, HidesPasswords) {
  const auto xml = readCase("q35.xml");
  const auto text = xmlDiff(xml, replaced(xml, "<video>", "<video a='b'>"));
  EXPECT_NE(text.find("autoport='yes' passwd='***'>"), std::string::npos) << text;
  EXPECT_EQ(text.find("geh"), std::string::npos);
  for (const char* secret :
       {"<a passwd='hush'/>", "<a passwd=\"hu'sh\"/>", "<a passwd = 'hush'/>",
        "<a\npasswd=\n'hush\nhush'/>", "<a passwd='hush", "<a b='>' passwd='hush'/>",
        "<a b='\"' c=\"passwd='\" passwd='hush'/>", "<!-- ' --><a passwd='hush'/>",
        "<![CDATA[\"]]><a passwd='hush'/>", "<?a '?><b>'</b><a passwd='hush'></a>"}) {
    const auto shown = xmlDiff("", secret);
    EXPECT_EQ(shown.find("sh"), std::string::npos) << shown;
    EXPECT_NE(shown.find("***"), std::string::npos) << shown;
  }
}

TEST(XmlDiff, HidesNothingElse) {
  EXPECT_EQ(xmlDiff("", "<a passwdValidTo='2030' nopasswd='1'>passwd</a>"),
            "@@ -0,0 +1 @@\n+<a passwdValidTo='2030' nopasswd='1'>passwd</a>\n");
  EXPECT_EQ(xmlDiff("", "passwd="), "@@ -0,0 +1 @@\n+passwd=\n");
  EXPECT_EQ(xmlDiff("", " passwd="), "@@ -0,0 +1 @@\n+ passwd=\n");
  for (const std::string open :
       {"<a> passwd=\"</a>", "<a b=' passwd=&quot;'/>", "<a b=' passwd=\"'/>", "<!-- passwd=' -->",
        "<![CDATA[<a passwd=\"]]>", "<?a passwd='?>"}) {
    EXPECT_EQ(xmlDiff("", open + "<b/>"), "@@ -0,0 +1 @@\n+" + open + "<b/>\n");
  }
}

TEST(XmlDiff, ShowsWhatFollowsAnOpenQuoteInATitle) {
  const std::string open = "<domain>\n<title> passwd=\"</title>\n";
  EXPECT_EQ(xmlDiff(open + "<a/>\n</domain>\n", open + "<b/>\n</domain>\n"),
            "@@ -1,4 +1,4 @@\n <domain>\n <title> passwd=\"</title>\n-<a/>\n+<b/>\n </domain>\n");
}

TEST(XmlDiff, ShowsOnlyAdditionsForAnAttach) {
  const auto xml = readCase("q35.xml");
  const auto text =
      xmlDiff(xml, withLeases(xml, sampleLeases(xml), builtInTemplates(), fake::sealKey()));
  EXPECT_EQ(text.find("\n-"), std::string::npos) << text;
  EXPECT_NE(text.find("\n+      <alias name='ua-vfpass-rail0'/>"), std::string::npos);
}

}  // namespace
}  // namespace vfpass::domain
