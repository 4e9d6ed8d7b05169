#include "vfpass/libvirt/libvirt_hypervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "libvirt_functions.hpp"
#include "libvirt_object.hpp"

namespace vfpass::libvirt {
namespace {

using testing::HasSubstr;
using testing::Not;

// libvirt's built-in test driver: one running domain `test`, no daemon.
constexpr const char* builtIn = "test:///default";
constexpr const char* trainUuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
const Definition definition(R"(<domain type='test'>
  <name>train0</name>
  <uuid>6ba7b810-9dad-11d1-80b4-00c04fd430c8</uuid>
  <memory unit='KiB'>1048576</memory>
  <os><type arch='i686'>hvm</type></os>
  <metadata>
    <vfpass:domain xmlns:vfpass="https://example.org/vfpass" kept="yes"/>
  </metadata>
  <devices>
    <graphics type='vnc' port='-1' autoport='yes' passwd='secret7'/>
  </devices>
</domain>)");

template <typename Call>
Error errorOf(Call call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    return error;
  }
  return Error("no failure");
}

class LibvirtTest : public testing::Test {
 protected:
  std::unique_ptr<Hypervisor> hypervisor_ = connect(builtIn);
};

// With one, libvirtd closes the connection while a step on a device takes more than 30 s. In a
// process of its own, because an unplug in another test registers an event loop.
TEST(LibvirtConnectionTest, HasNoEventLoop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto connectAndAddTimer = [] {
    const auto hypervisor = connect(builtIn);
    std::exit(virEventAddTimeout(
        0, [](int, void*) {}, nullptr, nullptr));
  };
  EXPECT_EXIT(connectAndAddTimer(), testing::ExitedWithCode(255), "");  // -1: none is registered
}

TEST_F(LibvirtTest, FindsRunningDomainByNameAndUuid) {
  const auto found = hypervisor_->findDomain("test");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "test");
  EXPECT_TRUE(found->active);
  EXPECT_TRUE(found->persistent);
  EXPECT_THAT(found->liveXml, HasSubstr("<name>test</name>"));
  EXPECT_THAT(found->liveXml, HasSubstr(" id='"));
  EXPECT_THAT(found->persistentXml, HasSubstr("<name>test</name>"));
  EXPECT_THAT(found->persistentXml, Not(HasSubstr("<domain type='test' id=")));

  const auto again = hypervisor_->findDomain(toString(found->uuid));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->name, "test");
}

TEST_F(LibvirtTest, UnknownDomainIsNotAnError) {
  EXPECT_FALSE(hypervisor_->findDomain("nobody").has_value());
  EXPECT_FALSE(hypervisor_->findDomain("00000000-0000-4000-8000-000000000000").has_value());
  EXPECT_FALSE(hypervisor_->findDomain("").has_value());
  EXPECT_FALSE(hypervisor_->findDomain(std::string("test\0x", 6)).has_value());
  EXPECT_FALSE(hypervisor_->findDomain("../test").has_value());
}

TEST_F(LibvirtTest, DefinesAndFindsAgain) {
  hypervisor_->defineDomain(definition);
  const auto found = hypervisor_->findDomain("train0");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(toString(found->uuid), trainUuid);
  EXPECT_FALSE(found->active);
  EXPECT_TRUE(found->persistent);
  EXPECT_TRUE(found->liveXml.empty());
  EXPECT_THAT(found->persistentXml, HasSubstr("kept=\"yes\""));
}

TEST_F(LibvirtTest, OnlyReadDefinitionReturnsSecrets) {
  hypervisor_->defineDomain(definition);
  EXPECT_THAT(hypervisor_->findDomain("train0")->persistentXml, Not(HasSubstr("secret7")));
  const auto read = hypervisor_->readDefinition(*parseUuid(trainUuid));
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(read->xml, HasSubstr("passwd='secret7'"));
  EXPECT_FALSE(hypervisor_->readDefinition(Uuid{}).has_value()) << "no such domain";
}

// persistentXml is a string without secrets; only a Definition can be defined.
static_assert(!std::is_convertible_v<std::string, Definition>);

TEST_F(LibvirtTest, DefiningAReadDefinitionChangesNothing) {
  hypervisor_->defineDomain(definition);
  const auto before = hypervisor_->readDefinition(*parseUuid(trainUuid));
  ASSERT_TRUE(before.has_value());
  hypervisor_->defineDomain(*before);
  EXPECT_EQ(hypervisor_->readDefinition(*parseUuid(trainUuid)), before);
}

TEST_F(LibvirtTest, PrefersNameOverUuid) {
  hypervisor_->defineDomain(definition);
  const std::string uuid = trainUuid;
  hypervisor_->defineDomain(
      Definition("<domain type='test'><name>" + uuid +
                 "</name><memory>1024</memory><os><type>hvm</type></os></domain>"));
  EXPECT_EQ(hypervisor_->findDomain(uuid)->name, uuid);
}

TEST_F(LibvirtTest, ListsEveryDomainWithoutSecrets) {
  hypervisor_->defineDomain(definition);
  const auto domains = hypervisor_->listDomains();
  ASSERT_EQ(domains.size(), 2U);
  const auto train = std::find_if(domains.begin(), domains.end(),
                                  [](const auto& domain) { return domain.name == "train0"; });
  ASSERT_NE(train, domains.end());
  EXPECT_THAT(train->persistentXml, HasSubstr("<graphics type='vnc'"));
  EXPECT_THAT(train->persistentXml, Not(HasSubstr("secret7")));
}

TEST_F(LibvirtTest, ReportsInvalidXmlWithLibvirtsMessage) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(errorOf([&] {
                hypervisor_->defineDomain(Definition("<domain"));
                return 0;
              }).what(),
              HasSubstr("libvirt refused the domain's definition: "));
  const Error nameless = errorOf([&] {
    hypervisor_->defineDomain(Definition("<domain type='test'><os><type>hvm</type></os></domain>"));
    return 0;
  });
  EXPECT_THAT(nameless.what(), HasSubstr("name"));
  EXPECT_EQ(nameless.code(), ExitCode::failed);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // libvirt prints every error by default
}

TEST_F(LibvirtTest, RefusesUuidOfAnotherDomain) {
  hypervisor_->defineDomain(definition);
  Definition other = definition;
  other.xml.replace(other.xml.find("train0"), 6, "train1");
  EXPECT_THROW(hypervisor_->defineDomain(other), Error);
}

TEST(LibvirtConnect, EmptyUriUsesTheEnvironment) {
  ASSERT_EQ(::setenv("LIBVIRT_DEFAULT_URI", builtIn, 1), 0);
  EXPECT_TRUE(connect("")->findDomain("test").has_value());
  ASSERT_EQ(::unsetenv("LIBVIRT_DEFAULT_URI"), 0);
}

TEST(LibvirtConnect, StoppedDaemonIsReportedWithItsSocket) {
  const Error error =
      errorOf([] { return connect("qemu+unix:///system?socket=/nonexistent/sock"); });
  EXPECT_THAT(error.what(), HasSubstr("is not running"));
  EXPECT_THAT(error.what(), HasSubstr("/nonexistent/sock"));
  EXPECT_THAT(error.remedy(), HasSubstr("systemctl start libvirtd"));
  EXPECT_THAT(error.remedy(), HasSubstr("virtqemud"));
  EXPECT_EQ(error.code(), ExitCode::failed);
}

TEST(LibvirtConnect, InvalidUrisAreBadInput) {
  for (const std::string uri : {"qemu+carrier-pigeon:///system", "test:///default?["}) {
    const Error error = errorOf([&] { return connect(uri); });
    EXPECT_THAT(error.what(), HasSubstr("cannot use " + uri + " as a libvirt URI")) << uri;
    EXPECT_THAT(error.remedy(), HasSubstr("--connect")) << uri;
    EXPECT_EQ(error.code(), ExitCode::badInput) << uri;
  }
}

TEST(LibvirtConnect, OtherErrorsKeepLibvirtsMessage) {
  const Error error = errorOf([] { return connect("test:///nonexistent/file.xml"); });
  // The message differs between releases: "failed to parse xml document", "Failed to open file".
  EXPECT_THAT(error.what(), HasSubstr("'/nonexistent/file.xml'"));
  EXPECT_FALSE(error.remedy().empty());
}

TEST(LibvirtConnect, ReportsTheVersion) {
  // The test driver's own version is 2.
  EXPECT_THAT(daemonVersions(builtIn), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+ 0\\.0\\.2"));
}

TEST(LibvirtErrors, ReportsDeniedPermission) {
  for (const Failure& failure : {Failure{VIR_ERR_SYSTEM_ERROR, EACCES, "Failed to connect socket"},
                                 Failure{VIR_ERR_AUTH_UNAVAILABLE, 0, "no polkit agent available"},
                                 Failure{VIR_ERR_AUTH_FAILED, 0, "authentication failed"},
                                 Failure{VIR_ERR_ACCESS_DENIED, 0, "access denied"}}) {
    for (const Error& error :
         {connectError("qemu:///system", failure), callError("cannot do it", failure)}) {
      EXPECT_THAT(error.what(), HasSubstr(failure.message));
      EXPECT_THAT(error.remedy(), HasSubstr("run as root, or join the group libvirt"));
      EXPECT_EQ(error.code(), ExitCode::failed);
    }
  }
}

TEST(LibvirtErrors, ReportsLostConnection) {
  const Error error = callError("cannot do it", {VIR_ERR_SYSTEM_ERROR, EPIPE, "Broken pipe"});
  EXPECT_THAT(error.what(), HasSubstr("lost the connection"));
}

TEST(LibvirtErrors, OtherErrorsKeepLibvirtsMessage) {
  const Error error = connectError("qemu:///system", {VIR_ERR_INTERNAL_ERROR, 0, "odd thing"});
  EXPECT_THAT(error.what(), HasSubstr("odd thing"));
  EXPECT_THAT(error.remedy(), HasSubstr("journalctl"));
}

}  // namespace
}  // namespace vfpass::libvirt
