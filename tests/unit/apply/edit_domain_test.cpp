// Concurrent edits of the definition: `virsh edit`, virt-manager or another tool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_host.hpp"

namespace vfpass::apply {
namespace {

using testing::HasSubstr;
using testing::Not;

class EditDomainTest : public testing::Test {
 protected:
  void describe(DomainDescription& domain, const std::string& text) {
    const std::string start = "<devices>";
    domain.persistentXml.text().insert(domain.persistentXml.text().find(start),
                                       "<description>" + text + "</description>");
    ++edits;
  }

  std::string failure() {
    try {
      host.attach();
    } catch (const Error& error) {
      return error.what();
    }
    return "no failure";
  }

  Host host;
  int edits = 0;
};

TEST_F(EditDomainTest, KeepsSecrets) {
  ASSERT_THAT(host.hypervisor.findDomain("train0")->persistentXml, Not(HasSubstr("s3cret")));
  host.attach();
  EXPECT_THAT(host.xml(), HasSubstr("passwd='s3cret'"));
}

TEST_F(EditDomainTest, KeepsConcurrentEdit) {
  host.hypervisor.afterRead = [this](DomainDescription& domain) {
    if (edits == 0) {
      describe(domain, "edited by hand");
    }
  };
  host.attach();
  EXPECT_EQ(edits, 1);
  EXPECT_THAT(host.xml(), HasSubstr("edited by hand"));
  EXPECT_TRUE(domain::parseDomain(host.xml()).managed);
}

TEST_F(EditDomainTest, GivesUpOnDefinitionThatKeepsChanging) {
  const auto leases = host.leases();
  host.hypervisor.afterRead = [this](DomainDescription& domain) {
    if (edits < 20) {
      describe(domain, "edit " + std::to_string(edits));
    }
  };
  EXPECT_THAT(failure(), HasSubstr("its definition changed 5 times"));
  EXPECT_FALSE(domain::parseDomain(host.xml()).managed);
  EXPECT_THAT(host.xml(), HasSubstr("edit 0"));
  EXPECT_EQ(host.leases(), leases);
}

}  // namespace
}  // namespace vfpass::apply
