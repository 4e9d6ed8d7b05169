#include "vfpass/domain/domain_xml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "support.hpp"

namespace vfpass::domain {
namespace {

using testing::HasSubstr;

class SealTest : public testing::Test {
 protected:
  std::string xml = readCase("q35.xml");
  std::vector<Lease> leases = sampleLeases(xml);
  std::string with = withLeases(xml, leases, builtInTemplates(), fake::sealKey());

  static std::string faultOf(const std::string& text, const SealKey& key = fake::sealKey()) {
    return sealFault(parseDomain(text), key);
  }
};

TEST_F(SealTest, AcceptsMetadataOfThisHost) {
  EXPECT_EQ(faultOf(with), "");
  EXPECT_TRUE(isSealed(parseDomain(with), fake::sealKey()));
}

TEST_F(SealTest, UnmanagedDomainIsNotSealed) {
  EXPECT_EQ(faultOf(xml), "");
  EXPECT_FALSE(isSealed(parseDomain(xml), fake::sealKey()));
}

TEST_F(SealTest, SurvivesReformatting) {
  auto text = replaced(with, " xmlns:vfpass=", "\n   xmlns:v=");
  while (text.find("vfpass:") != std::string::npos) {
    text = replaced(text, "vfpass:", "v:");
  }
  text = replaced(text, R"("generation":7,)", "");
  text = replaced(text, "<v:lease>{", "<!-- x -->\n<v:lease\n>\n {\t\"generation\" : 7,");
  EXPECT_EQ(faultOf(text), "");
}

TEST_F(SealTest, IgnoresTheOrderOfLeases) {
  std::swap(leases[0], leases[1]);
  EXPECT_EQ(sealOf(leases, fake::sealKey()), parseDomain(with).seal);
}

TEST_F(SealTest, RejectsEveryEditedTerm) {
  for (const auto& [from, to] : std::vector<std::pair<const char*, const char*>>{
           {R"("id":100)", R"("id":101)"},
           {R"("trust":false)", R"("trust":true)"},
           {R"("generation":7)", R"("generation":8)"},
           {R"("kind":"vf")", R"("kind":"function")"},
           {R"("driver":"mlx5_core")", R"("driver":"other")"},
           {R"("persistent":true)", R"("persistent":false)"},
           {R"("allow":[])", R"("allow":["trust"])"},
           {R"("vf":"0000:3b:00.2")", R"("vf":"0000:3b:00.4")"},
           {R"("index":3)", R"("index":9)"}}) {
    EXPECT_THAT(faultOf(replaced(with, from, to)), HasSubstr("wrong seal")) << from;
  }
}

TEST_F(SealTest, ChangesWithEveryMemberOfALease) {
  std::mt19937 random(20251122);
  std::set<std::string> seals;
  for (int round = 0; round < 200; ++round) {
    seals.insert(sealOf(randomLeases(random, 1), fake::sealKey()));
  }
  EXPECT_EQ(seals.size(), 200U);
}

TEST_F(SealTest, RejectsRemovedLease) {
  const auto first = with.find("<vfpass:lease>");
  const auto second = with.find("<vfpass:lease>", first + 1);
  EXPECT_THAT(faultOf(with.substr(0, first) + with.substr(second)), HasSubstr("wrong seal"));
}

TEST_F(SealTest, RejectsOtherHostAndOtherKey) {
  SealKey other = fake::sealKey();
  other.hostId[0] = 'f';
  EXPECT_THAT(faultOf(with, other), HasSubstr("another host"));
  other = fake::sealKey();
  other.secret[31] ^= 1U;
  EXPECT_THAT(faultOf(with, other), HasSubstr("wrong seal"));
}

TEST_F(SealTest, RejectsMissingSealAndMissingKey) {
  const auto unsealed = withLeases(xml, leases, builtInTemplates(), {});
  EXPECT_THAT(faultOf(unsealed), HasSubstr("has no seal"));
  EXPECT_THAT(faultOf(unsealed, {}), HasSubstr("has no seal"));
  EXPECT_THAT(faultOf(with, {}), HasSubstr("no key"));
  EXPECT_FALSE(carriesLeases(unsealed, leases, fake::sealKey()));
}

TEST_F(SealTest, RejectsCopyWithAnotherUuid) {
  const auto copy = replaced(with, "<uuid>1111", "<uuid>aaaa");
  EXPECT_THAT(faultOf(copy), HasSubstr("copied"));
  EXPECT_THAT(faultOf(replaced(copy, " uuid=\"1111", " uuid=\"aaaa")), HasSubstr("wrong seal"));
}

TEST_F(SealTest, RejectsUnreadableMetadata) {
  EXPECT_THAT(faultOf(replaced(with, R"("id":100)", R"("id":"x")")),
              HasSubstr("cannot be read: a lease: expected a number"));
}

TEST_F(SealTest, SealsLiveMetadataIdentically) {
  EXPECT_THAT(metadataXml(leases, fake::sealKey()),
              HasSubstr("seal=\"" + sealOf(leases, fake::sealKey()) + "\""));
}

}  // namespace
}  // namespace vfpass::domain
