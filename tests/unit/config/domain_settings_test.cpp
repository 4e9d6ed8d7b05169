#include <gmock/gmock.h>

#include "support.hpp"

namespace vfpass::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string mappingWith(const std::string& gpu, const std::string& top) {
  return "version: 1\nvm: train0\ngpus:\n  - {name: gpu0, pci: \"0000:3a:00.0\"" + gpu + "}\n" +
         top;
}

TEST(DomainSettings, AreOnlyShownUnlessMappingSaysApply) {
  EXPECT_FALSE(readMappingText(mappingWith("", "")).mapping.applyDomainSettings);
  EXPECT_FALSE(
      readMappingText(mappingWith("", "domain-settings: show\n")).mapping.applyDomainSettings);
  const auto read = readMappingText(mappingWith("", "domain-settings: apply\n"));
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_TRUE(read.mapping.applyDomainSettings);
}

TEST(DomainSettings, RefusesOtherWords) {
  EXPECT_THAT(readMappingText(mappingWith("", "domain-settings: yes\n")).problems,
              ElementsAre(HasSubstr("`show`")));
}

TEST(IommuBackend, HasThreeValuesAndADefault) {
  EXPECT_EQ(readMappingText(mappingWith("", "")).mapping.iommuBackend, std::nullopt);
  for (const auto& [word, backend] :
       {std::pair("auto", IommuBackend::automatic), std::pair("container", IommuBackend::container),
        std::pair("iommufd", IommuBackend::iommufd)}) {
    const auto read =
        readMappingText(mappingWith("", "iommu-backend: " + std::string(word) + "\n"));
    EXPECT_THAT(read.problems, IsEmpty()) << word;
    EXPECT_EQ(read.mapping.iommuBackend, backend) << word;
    EXPECT_EQ(toString(backend), word);
  }
  EXPECT_THAT(readMappingText(mappingWith("", "iommu-backend: type1\n")).problems,
              ElementsAre(HasSubstr("`auto`, `container` or `iommufd`")));
}

TEST(LinkSpeeds, AreQemusUnlessMappingSaysHost) {
  EXPECT_FALSE(readMappingText(mappingWith("", "")).mapping.hostLinkSpeeds);
  EXPECT_FALSE(readMappingText(mappingWith("", "link-speeds: qemu\n")).mapping.hostLinkSpeeds);
  const auto read = readMappingText(mappingWith("", "link-speeds: host\n"));
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_TRUE(read.mapping.hostLinkSpeeds);
  EXPECT_THAT(readMappingText(mappingWith("", "link-speeds: 32\n")).problems,
              ElementsAre(HasSubstr("`host`")));
}

TEST(NvlinkModule, AcceptsNumbersFrom0To255) {
  const auto read = readMappingText(mappingWith(", nvlink-module: 255", ""));
  EXPECT_THAT(read.problems, IsEmpty());
  ASSERT_THAT(read.mapping.functions, SizeIs(1));
  EXPECT_EQ(read.mapping.functions[0].nvlinkModule, 255U);
  EXPECT_EQ(readMappingText(mappingWith("", "")).mapping.functions[0].nvlinkModule, std::nullopt);
  for (const char* bad : {", nvlink-module: 256", ", nvlink-module: -1", ", nvlink-module: all"}) {
    EXPECT_THAT(readMappingText(mappingWith(bad, "")).problems,
                ElementsAre(HasSubstr("module ID from 0 to 255")))
        << bad;
  }
}

TEST(Clique, AcceptsNumbersFrom0To15) {
  const auto read = readMappingText(mappingWith(", clique: 15", ""));
  EXPECT_THAT(read.problems, IsEmpty());
  ASSERT_THAT(read.mapping.functions, SizeIs(1));
  EXPECT_EQ(read.mapping.functions[0].clique, 15U);
  EXPECT_EQ(readMappingText(mappingWith("", "")).mapping.functions[0].clique, std::nullopt);
  for (const char* bad : {", clique: 16", ", clique: -1", ", clique: none"}) {
    EXPECT_THAT(readMappingText(mappingWith(bad, "")).problems, ElementsAre(HasSubstr("clique")))
        << bad;
  }
}

}  // namespace
}  // namespace vfpass::config
