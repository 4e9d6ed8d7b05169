// The host's seal key is created when leases are first written into a domain, and not by plans that
// need none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_host.hpp"
#include "vfpass/error.hpp"

namespace vfpass::apply {
namespace {

class RequireSealKeyTest : public testing::Test {
 protected:
  RequireSealKeyTest() {
    host.key = {};
    host.makeSealKey = [this] {
      ++made;
      host.key = fake::sealKey();
    };
  }

  Host host;
  int made = 0;
};

TEST_F(RequireSealKeyTest, AttachMakesKeyAndSealsWithIt) {
  host.attach();
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(domain::carriesLeases(host.xml(), host.leases(), fake::sealKey()));
}

TEST_F(RequireSealKeyTest, ExistingKeyIsKept) {
  host.key = fake::sealKey();
  host.attach();
  EXPECT_EQ(made, 0);
}

TEST_F(RequireSealKeyTest, NothingChangesIfKeyCannotBeMade) {
  const std::string before = host.fingerprint();
  host.makeSealKey = [] { throw Error("read-only"); };
  EXPECT_THROW(host.attach(), Error);
  EXPECT_EQ(host.fingerprint(), before);
  EXPECT_TRUE(host.leases().empty());
  EXPECT_TRUE(host.recoverAll().empty()) << "no operation is left";
}

// Detach removes the leases from the XML; to roll that back, they are written again.
TEST_F(RequireSealKeyTest, DetachMakesKeyForItsInverse) {
  host.attach();
  host.key = {};
  made = 0;
  host.execute(host.detachPlan());
  EXPECT_EQ(made, 1);
}

TEST_F(RequireSealKeyTest, PlanWithoutDomainStepsNeedsNoKey) {
  host.attach();
  host.key = {};
  made = 0;
  host.execute(host.preparePlan());
  EXPECT_EQ(made, 0);
}

}  // namespace
}  // namespace vfpass::apply
