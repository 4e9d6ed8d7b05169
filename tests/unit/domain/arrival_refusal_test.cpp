#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"

namespace vfpass::domain {
namespace {

using testing::EndsWith;
using testing::StartsWith;

constexpr const char* plain = "<domain type='kvm'>\n  <name>train0</name>\n</domain>\n";

TEST(ArrivalRefusal, IsReadBack) {
  const auto found =
      refusalIn(withRefusal(plain, Error("the <VF> of 'a' & \"b\" is gone", "x > y")));
  ASSERT_TRUE(found);
  EXPECT_STREQ(found->what(), "the <VF> of 'a' & \"b\" is gone");
  EXPECT_EQ(found->remedy(), "x > y");
  EXPECT_EQ(found->code(), ExitCode::refused);
}

TEST(ArrivalRefusal, KeepsAllOtherBytes) {
  const std::string begin = "<domain type='kvm'>\n  <name>train0</name>\n  <metadata>\n";
  const std::string other = "    <lab:note xmlns:lab=\"https://lab.example\">x</lab:note>";
  const std::string end = "\n  </metadata>\n</domain>\n";
  const std::string xml = withRefusal(begin + other + end, Error("gone", "remedy"));
  EXPECT_THAT(xml, StartsWith(begin + other));
  EXPECT_THAT(xml, EndsWith(end));
  EXPECT_TRUE(refusalIn(xml));
}

// libvirt's parser refuses control characters.
TEST(ArrivalRefusal, IsOnePrintableLine) {
  const auto found = refusalIn(withRefusal(plain, Error("a\nb\x1b[31m", "c\td")));
  ASSERT_TRUE(found);
  EXPECT_EQ(std::string(found->what()).find_first_of("\n\x1b"), std::string::npos);
  EXPECT_EQ(found->remedy().find('\t'), std::string::npos);
}

TEST(ArrivalRefusal, IsOnlyWhatVfpassHasWritten) {
  EXPECT_FALSE(refusalIn(plain));
  const std::string text =
      "<vfpass:refusal xmlns:vfpass='https://vfpass.org/xmlns/refusal/1' reason='x'/>";
  EXPECT_FALSE(
      refusalIn("<domain type='kvm'><name>a</name><devices>" + text + "</devices></domain>"));
  EXPECT_FALSE(
      refusalIn("<domain type='kvm'><name>a</name><title>https://vfpass.org/xmlns/refusal/1</title>"
                "<metadata><vfpass:refusal xmlns:vfpass='https://other.example' "
                "reason='x'/></metadata></domain>"));
}

}  // namespace
}  // namespace vfpass::domain
