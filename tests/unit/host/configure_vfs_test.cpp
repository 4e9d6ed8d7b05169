#include "sriov/configure_vfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <set>

#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MacAddress mac(std::uint8_t last) { return {{0x02, 0, 0, 0, 0, last}}; }

// Behaves like do_setvfinfo: applies attribute after attribute, VF after VF, and stops at the first
// refusal without reverting earlier attributes.
class SimulatedDriver final : public VfPort {
 public:
  VfTable table;
  std::map<std::pair<unsigned, Attribute>, int> refusals;
  std::set<Attribute> ignored;  ///< accepted, never applied
  std::set<unsigned> hidden;    ///< VFs that are missing from the reply
  bool blind = false;           ///< GUIDs never read back
  int lateReads = 0;            ///< number of reads until a new MAC is visible
  int reads = 0;
  std::vector<std::vector<VfRequest>> sent;

  VfTable read() override {
    ++reads;
    VfTable shown = table;
    for (auto& [index, settings] : shown) {
      if (late_.contains(index) && --lateReads >= 0) {
        settings.mac = late_[index];
      }
      if (blind) {
        settings.nodeGuid.reset();
        settings.portGuid.reset();
      }
    }
    for (const unsigned index : hidden) {
      shown.erase(index);
    }
    return shown;
  }

  Acknowledgement set(const std::vector<VfRequest>& requests) override {
    sent.push_back(requests);
    for (const VfRequest& request : requests) {
      for (const Attribute attribute : differingAttributes(request.settings, {})) {
        const auto refusal = refusals.find({request.index, attribute});
        if (refusal != refusals.end()) {
          return {refusal->second, "refused by firmware"};
        }
        apply(request, attribute);
      }
    }
    return {};
  }

 private:
  void apply(const VfRequest& request, Attribute attribute) {
    VfSettings& settings = table[request.index];
    if (ignored.contains(attribute)) {
      return;
    }
    switch (attribute) {
      case Attribute::mac:
        late_[request.index] = *settings.mac;
        settings.mac = request.settings.mac;
        break;
      case Attribute::vlan:
        settings.vlan = request.settings.vlan;
        break;
      case Attribute::rate:
        settings.rate = request.settings.rate;
        break;
      case Attribute::spoofCheck:
        settings.spoofCheck = request.settings.spoofCheck;
        break;
      case Attribute::linkState:
        settings.linkState = request.settings.linkState;
        break;
      case Attribute::trust:
        settings.trust = request.settings.trust;
        break;
      case Attribute::nodeGuid:
        settings.nodeGuid = request.settings.nodeGuid;
        break;
      case Attribute::portGuid:
        settings.portGuid = request.settings.portGuid;
        break;
    }
  }

  std::map<unsigned, MacAddress> late_;
};

class ConfigureVfsTest : public testing::Test {
 protected:
  ConfigureVfsTest() {
    for (unsigned vf = 0; vf < 3; ++vf) {
      driver_.table[vf] = neutralSettings(false);
    }
    before_ = driver_.table;
    wanted_.mac = mac(1);
    wanted_.vlan = Vlan{100, 3, VlanProtocol::dot1q};
    wanted_.trust = true;
    wanted_.spoofCheck = true;  // already set
  }

  std::vector<RefusedAttribute> run(std::set<Attribute> required = {}) {
    return configureVfs(driver_, {{1, wanted_, std::move(required)}}, names_, deadline_);
  }
  std::string failure(std::set<Attribute> required) {
    try {
      run(std::move(required));
    } catch (const Error& error) {
      remedy_ = error.remedy();
      return error.what();
    }
    return "no error";
  }

  SimulatedDriver driver_;
  VfTable before_;
  VfSettings wanted_;
  std::chrono::milliseconds deadline_{60};  ///< long enough for tests that wait until it passes
  PortNames names_{"ens1f0np0 (0000:01:00.0)", "mlx5_core"};
  std::string remedy_;
};

TEST_F(ConfigureVfsTest, SendsDifferingAttributesInOneMessage) {
  EXPECT_THAT(run(), IsEmpty());
  ASSERT_EQ(driver_.sent.size(), 1U);
  VfSettings sent = wanted_;
  sent.spoofCheck.reset();
  EXPECT_EQ(driver_.sent[0], (std::vector<VfRequest>{{1, sent}}));
  EXPECT_EQ(driver_.reads, 2);
}

TEST_F(ConfigureVfsTest, ConfiguresSeveralVfsInOneMessage) {
  configureVfs(driver_, {{0, wanted_, {}}, {2, wanted_, {}}}, names_, deadline_);
  ASSERT_EQ(driver_.sent.size(), 1U);
  EXPECT_EQ(driver_.sent[0].size(), 2U);
  EXPECT_EQ(driver_.table[2].vlan, wanted_.vlan);
  EXPECT_EQ(driver_.table[1], before_[1]);
}

TEST_F(ConfigureVfsTest, SendsNothingWhenSettingsMatch) {
  run();
  driver_.sent.clear();
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(driver_.sent, IsEmpty());
}

TEST_F(ConfigureVfsTest, IgnoresProtocolWithoutVlan) {
  wanted_ = {};
  wanted_.vlan = Vlan{0, 0, VlanProtocol::dot1ad};
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(driver_.sent, IsEmpty());
}

TEST_F(ConfigureVfsTest, ReportsRefusedOptionalAttributeAndAppliesOthers) {
  driver_.refusals[{1, Attribute::vlan}] = EOPNOTSUPP;
  const auto refused = run({Attribute::mac});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].vfIndex, 1U);
  EXPECT_EQ(refused[0].attribute, Attribute::vlan);
  EXPECT_THAT(refused[0].reason, AllOf(HasSubstr("EOPNOTSUPP"), HasSubstr("refused by firmware")));
  EXPECT_EQ(driver_.table[1].mac, mac(1));
  EXPECT_EQ(driver_.table[1].trust, true);
  EXPECT_EQ(driver_.table[1].vlan, Vlan{});
}

TEST_F(ConfigureVfsTest, RollsBackAfterRefusedRequiredAttribute) {
  driver_.refusals[{1, Attribute::trust}] = EOPNOTSUPP;
  EXPECT_THAT(failure({Attribute::trust}),
              AllOf(HasSubstr("ens1f0np0 (0000:01:00.0): driver mlx5_core cannot set trust of VF 1 "
                              "to on: "),
                    HasSubstr("EOPNOTSUPP"), HasSubstr("the previous attributes were restored")));
  EXPECT_THAT(remedy_, HasSubstr("required:"));
  EXPECT_EQ(driver_.table, before_);
}

TEST_F(ConfigureVfsTest, RollsBackOtherVfsOfBatch) {
  driver_.refusals[{2, Attribute::mac}] = EINVAL;
  EXPECT_THROW(
      configureVfs(driver_, {{0, wanted_, {}}, {2, wanted_, {Attribute::mac}}}, names_, deadline_),
      Error);
  EXPECT_EQ(driver_.table, before_);
}

TEST_F(ConfigureVfsTest, NamesAttributesThatCannotBeRestored) {
  driver_.refusals[{1, Attribute::trust}] = EIO;
  driver_.table[1].mac.reset();  // the previous MAC is not observable
  before_ = driver_.table;
  driver_.table[1].mac = mac(9);
  driver_.hidden = {1};
  EXPECT_THAT(failure({Attribute::trust}), HasSubstr("cannot restore: mac of VF 1 (its previous"));
}

TEST_F(ConfigureVfsTest, WaitsForLateMac) {
  driver_.lateReads = 3;
  deadline_ = std::chrono::seconds(10);
  EXPECT_THAT(run({Attribute::mac}), IsEmpty());
  EXPECT_GE(driver_.reads, 5);
}

TEST_F(ConfigureVfsTest, TreatsAttributeThatIsNeverAppliedAsRefused) {
  driver_.ignored = {Attribute::trust};
  const auto refused = run();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].attribute, Attribute::trust);
  EXPECT_EQ(refused[0].reason, "accepted, but reads back as off");
  EXPECT_THAT(failure({Attribute::trust}), HasSubstr("reads back as off"));
  EXPECT_EQ(driver_.table[1].trust, false);
}

TEST_F(ConfigureVfsTest, AssumesUnobservableAttributesAreApplied) {
  driver_.blind = true;
  wanted_ = {};
  wanted_.nodeGuid = Guid{5};
  wanted_.portGuid = Guid{6};
  EXPECT_THAT(run({Attribute::nodeGuid, Attribute::portGuid}), IsEmpty());
  EXPECT_EQ(driver_.table[1].portGuid, Guid{6});
  EXPECT_EQ(driver_.reads, 2);
}

TEST_F(ConfigureVfsTest, ConfiguresVfMissingFromReply) {
  driver_.hidden = {1};
  EXPECT_THAT(run({Attribute::mac}), IsEmpty());
  EXPECT_EQ(driver_.table[1].mac, mac(1));
}

TEST_F(ConfigureVfsTest, FailsAtOnceWithoutPermission) {
  for (const Attribute attribute : allAttributes) {
    driver_.refusals[{1, attribute}] = EPERM;
  }
  EXPECT_THAT(failure({}), HasSubstr("EPERM"));
  EXPECT_EQ(driver_.sent.size(), 1U);
  EXPECT_THAT(remedy_, HasSubstr("run as root"));
}

// mlx5 returns EPERM where the PF does not manage the embedded switch (BlueField in DPU mode).
TEST_F(ConfigureVfsTest, BlamesDriverForEpermWhenPrivileged) {
  for (const Attribute attribute : allAttributes) {
    driver_.refusals[{1, attribute}] = EPERM;
  }
  names_.privileged = true;
  EXPECT_THAT(failure({}), HasSubstr("EPERM"));
  EXPECT_THAT(remedy_, AllOf(HasSubstr("does not manage its embedded switch"),
                             HasSubstr("DPU mode"), testing::Not(HasSubstr("root"))));
}

}  // namespace
}  // namespace vfpass::host
