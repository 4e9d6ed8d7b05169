// Metadata that somebody who may edit one domain has written: as much and as deep as libvirt
// accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "document.hpp"
#include "fake/seal_key.hpp"
#include "support.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::domain {
namespace {

using testing::HasSubstr;

class HostileMetadata : public testing::Test {
 protected:
  std::string xml_ = readCase("q35.xml");
  std::vector<Lease> leases_ = sampleLeases(xml_);
  std::string attached_ = withLeases(xml_, leases_, builtInTemplates(), fake::sealKey());
  std::string version1_ = readCase("version-1.xml");

  // Next to our element.
  [[nodiscard]] std::string withForeign(const std::string& content) const {
    return replaced(attached_, "</metadata>",
                    "<f:x xmlns:f='urn:f'>" + content + "</f:x></metadata>");
  }

  [[nodiscard]] std::string withinOurs(const std::string& content) const {
    return replaced(attached_, "</vfpass:domain>", content + "</vfpass:domain>");
  }
};

TEST_F(HostileMetadata, ForeignElementsAffectNothing) {
  for (const std::string& content :
       {repeated("<a>", 255) + repeated("</a>", 255),
        repeated("<a>", 100'000) + repeated("</a>", 100'000), repeated("<a/>", 300'000),
        "<![CDATA[</f:x></metadata>" + repeated("<a>", 999) + "]]>",
        std::string("<uuid>x</uuid><metadata><devices/></metadata>"),
        // Not ours, but it names our namespace.
        "<f:domain f:u='https://vfpass.org/xmlns/domain/1'>" + repeated("<a>", 200) +
            repeated("</a>", 200) + "</f:domain>"}) {
    const std::string text = withForeign(content);
    const auto parsed = parseDomain(text);
    EXPECT_EQ(parsed.claims, parseDomain(attached_).claims);
    EXPECT_EQ(parsed.leases, parseDomain(attached_).leases);
    EXPECT_EQ(sealFault(parsed, fake::sealKey()), "");
    EXPECT_TRUE(carriesLeases(text, leases_, fake::sealKey()));
    const auto bare = withLeases(text, {}, builtInTemplates(), {});
    EXPECT_NE(bare.find("<f:x xmlns:f='urn:f'>" + content + "</f:x>"), std::string::npos);
    EXPECT_FALSE(parseDomain(bare).managed);
  }
}

TEST_F(HostileMetadata, ExcessInOurElementIsAMetadataProblem) {
  for (const std::string& content :
       {repeated("<a>", maxMetadataNesting + 1) + repeated("</a>", maxMetadataNesting + 1),
        repeated("<a/>", maxMetadataElements + 1)}) {
    const auto parsed = parseDomain(withinOurs(content));
    EXPECT_TRUE(parsed.managed);
    EXPECT_THAT(parsed.metadataProblem, HasSubstr("too many elements, or nested too deeply"));
    EXPECT_TRUE(parsed.leases.empty());
    EXPECT_EQ(parsed.claims, parseDomain(attached_).claims);
    EXPECT_EQ(withLeases(withinOurs(content), {}, builtInTemplates(), {}),
              withLeases(attached_, {}, builtInTemplates(), {}))
        << "it can be removed";
  }
}

TEST_F(HostileMetadata, MoreLeasesThanAGuestHasRoomForAreAMetadataProblem) {
  const auto begin = attached_.find("<vfpass:lease>");
  const auto end = attached_.find("</vfpass:lease>", begin) + 15;
  std::string many;
  for (int number = 0; number < 1030; ++number) {
    many += replaced(attached_.substr(begin, end - begin), R"("vf-name":"rail0")",
                     R"("vf-name":"n)" + std::to_string(number) + "\"");
  }
  EXPECT_THAT(parseDomain(withinOurs(many)).metadataProblem, HasSubstr("more than 1024 leases"));
}

TEST_F(HostileMetadata, MoreValuesThanALeaseCanHaveAreAMetadataProblem) {
  const std::string many =
      replaced(attached_, R"("allow":[])", R"("allow":[0)" + repeated(",0", 100'000) + "]");
  EXPECT_THAT(parseDomain(many).metadataProblem, HasSubstr("more than 100000 values"));
  const std::string deep = replaced(attached_, R"("allow":[])",
                                    R"("allow":)" + repeated("[", 50'000) + repeated("]", 50'000));
  EXPECT_THAT(parseDomain(deep).metadataProblem, HasSubstr("nested more than 32 levels deep"));
}

// detach still finds what vfpass added.
TEST_F(HostileMetadata, RecordedSettingsOfADamagedLeaseAreRemoved) {
  leases_[0].edits = {{"pinning", EditPlace::cputune, {"<vcpupin vcpu='0' cpuset='1'/>"}}};
  const auto with = withLeases(xml_, leases_, builtInTemplates(), fake::sealKey());
  for (const std::string& damaged : {replaced(with, R"("generation":7)", R"("generation":"x")"),
                                     replaced(version1_, "generation=\"7\"", "generation=\"x\"")}) {
    EXPECT_NE(parseDomain(damaged).metadataProblem, "");
    EXPECT_EQ(withLeases(damaged, {}, builtInTemplates(), {}), xml_);
  }
}

TEST_F(HostileMetadata, NamespaceCanBeDeclaredAbove) {
  const std::string declaration = " xmlns:vfpass=\"https://vfpass.org/xmlns/domain/1\"";
  auto above = replaced(attached_, declaration, "");
  EXPECT_FALSE(parseDomain(above).managed);
  above = replaced(above, "<metadata>", "<metadata" + declaration + ">");
  EXPECT_EQ(sealFault(parseDomain(above), fake::sealKey()), "");
  EXPECT_TRUE(parseDomain(above).managed);
  above = replaced(above, "<vfpass:domain ", "<vfpass:domain xmlns:vfpass='urn:other' ");
  EXPECT_FALSE(parseDomain(above).managed);
}

// CPU time, the least of several runs.
double cost(const std::function<void()>& work) {
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    timespec before{};
    timespec after{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    work();
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    least = std::min(least, static_cast<double>(after.tv_sec - before.tv_sec) +
                                static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9);
  }
  return least;
}

// Eight times the input costs 8 times as much if the work is linear, and 64 times as much if it is
// quadratic.
void expectLinear(const std::function<std::string(std::size_t)>& input,
                  const std::function<void(const std::string&)>& work, std::size_t size) {
  const std::string small = input(size);
  const std::string large = input(8 * size);
  const double ratio = cost([&] { work(large); }) / cost([&] { work(small); });
  EXPECT_LT(ratio, 30);
}

TEST_F(HostileMetadata, ReadingIsLinear) {
  const auto read = [](const std::string& xml) {
    parseDomain(xml);
    readGuestMachine(xml);
    readDomainFacts(xml);
    guestMemory(xml);
    devicesOfOurs(xml);
    placeDevices(xml, 1);
    placeInRunning(xml, xml);
  };
  const auto interfaces = [this](std::size_t count) {
    std::string text;
    for (std::size_t number = 0; number < count; ++number) {
      text += "<interface><mac address='" +
              toString(MacAddress{{2, 0, static_cast<std::uint8_t>(number >> 16U),
                                   static_cast<std::uint8_t>(number >> 8U),
                                   static_cast<std::uint8_t>(number), 0}}) +
              "'/></interface>";
    }
    return replaced(xml_, "</devices>", text + "</devices>");
  };
  expectLinear(interfaces, read, 5000);
  // As many attributes above our children as there are children.
  const auto attributes = [this](std::size_t count) {
    std::string text;
    for (std::size_t number = 0; number < count; ++number) {
      text += " a" + std::to_string(number) + "='0'";
    }
    const std::string setting = "<vfpass:setting name='x' place='cputune'>" +
                                repeated("<vfpass:element text='&lt;a/>'/>", count) +
                                "</vfpass:setting></vfpass:lease>";
    const std::string ours = replaced(replaced(version1_, "</vfpass:lease>", setting),
                                      " xmlns:vfpass=\"https://vfpass.org/xmlns/domain/1\"", "");
    return replaced(ours, "<metadata>",
                    "<metadata" + text + " xmlns:vfpass='https://vfpass.org/xmlns/domain/1'>");
  };
  expectLinear(attributes, read, 5000);
}

// Both the recorded elements and those that are searched are the attacker's.
TEST_F(HostileMetadata, RemovingRecordedSettingsIsLinear) {
  using Text = std::function<std::string(std::size_t)>;
  const auto expectLinearRemoval = [this](const Text& recorded, const Text& present) {
    const auto input = [&](std::size_t count) {
      const std::string record = R"("edits":[{"elements":[)" + recorded(count) +
                                 R"(],"place":"cputune","setting":"x"}],"generation")";
      return replaced(replaced(attached_, R"("generation")", record), "<devices>",
                      "<cputune>" + present(count) + "</cputune><devices>");
    };
    expectLinear(
        input, [](const std::string& xml) { withLeases(xml, {}, builtInTemplates(), {}); }, 1000);
  };
  const auto element = [](const std::string& text) {
    return "\"" + replaced(text, "<", "&lt;") + "\"";
  };
  const Text many = [](std::size_t count) { return repeated("<a/>", 2 * count); };
  // The record is found nearly everywhere.
  expectLinearRemoval(
      [&](std::size_t count) { return repeated(element("<a/>") + ",", count) + element("<b/>"); },
      many);
  // Its elements have many attributes.
  const Text attributes = [](std::size_t count) {
    std::string text = "<a";
    for (std::size_t number = 0; number < count; ++number) {
      text += " a" + std::to_string(number) + "=''";
    }
    return text + "/>";
  };
  expectLinearRemoval(
      [&](std::size_t count) {
        return element(attributes(count)) + "," + element(attributes(count));
      },
      many);
  // Its first element is large.
  expectLinearRemoval(
      [&](std::size_t count) { return element("<a>" + repeated("&lt;b/>", count) + "&lt;/a>"); },
      many);
}

}  // namespace
}  // namespace vfpass::domain
