#include "configure_vfs.hpp"

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

// Behaves as do_setvfinfo does: VF after VF, attribute after attribute, ends at the first refusal,
// and what it did before stays.
class SimulatedDriver final : public VfPort {
 public:
  VfTable table;
  std::map<std::pair<unsigned, Attribute>, int> refusals;
  std::set<Attribute> ignored;  ///< accepted, never applied
  std::set<unsigned> hidden;    ///< VFs that the reply leaves out
  bool blind = false;           ///< GUIDs never read back
  int lateReads = 0;            ///< a MAC shows after so many reads
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
          return {refusal->second, "firmware says no"};
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
    wanted_.spoofCheck = true;  // already so
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
  std::chrono::milliseconds deadline_{60};  ///< enough where it is to pass in vain
  PortNames names_{"ens1f0np0 (0000:01:00.0)", "mlx5_core"};
  std::string remedy_;
};

TEST_F(ConfigureVfsTest, OneMessageWithOnlyWhatDiffers) {
  EXPECT_THAT(run(), IsEmpty());
  ASSERT_EQ(driver_.sent.size(), 1U);
  VfSettings sent = wanted_;
  sent.spoofCheck.reset();
  EXPECT_EQ(driver_.sent[0], (std::vector<VfRequest>{{1, sent}}));
  EXPECT_EQ(driver_.reads, 2);
}

TEST_F(ConfigureVfsTest, ManyVfsInOneMessage) {
  configureVfs(driver_, {{0, wanted_, {}}, {2, wanted_, {}}}, names_, deadline_);
  ASSERT_EQ(driver_.sent.size(), 1U);
  EXPECT_EQ(driver_.sent[0].size(), 2U);
  EXPECT_EQ(driver_.table[2].vlan, wanted_.vlan);
  EXPECT_EQ(driver_.table[1], before_[1]);
}

TEST_F(ConfigureVfsTest, SendsNothingTwice) {
  run();
  driver_.sent.clear();
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(driver_.sent, IsEmpty());
}

TEST_F(ConfigureVfsTest, NoVlanNeedsNoMessage) {
  wanted_ = {};
  wanted_.vlan = Vlan{0, 0, VlanProtocol::dot1ad};
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_THAT(driver_.sent, IsEmpty());
}

TEST_F(ConfigureVfsTest, ARefusedOptionalAttributeIsReportedAndTheRestHolds) {
  driver_.refusals[{1, Attribute::vlan}] = EOPNOTSUPP;
  const auto refused = run({Attribute::mac});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].vfIndex, 1U);
  EXPECT_EQ(refused[0].attribute, Attribute::vlan);
  EXPECT_THAT(refused[0].reason, AllOf(HasSubstr("EOPNOTSUPP"), HasSubstr("firmware says no")));
  EXPECT_EQ(driver_.table[1].mac, mac(1));
  EXPECT_EQ(driver_.table[1].trust, true);
  EXPECT_EQ(driver_.table[1].vlan, Vlan{});
}

TEST_F(ConfigureVfsTest, ARefusedRequiredAttributeUndoesAll) {
  driver_.refusals[{1, Attribute::trust}] = EOPNOTSUPP;
  EXPECT_THAT(failure({Attribute::trust}),
              AllOf(HasSubstr("mlx5_core refuses trust on for VF 1 of ens1f0np0 (0000:01:00.0)"),
                    HasSubstr("EOPNOTSUPP"), HasSubstr("the other attributes are as they were")));
  EXPECT_THAT(remedy_, HasSubstr("required:"));
  EXPECT_EQ(driver_.table, before_);
}

TEST_F(ConfigureVfsTest, OtherVfsOfTheBatchAreUndoneToo) {
  driver_.refusals[{2, Attribute::mac}] = EINVAL;
  EXPECT_THROW(
      configureVfs(driver_, {{0, wanted_, {}}, {2, wanted_, {Attribute::mac}}}, names_, deadline_),
      Error);
  EXPECT_EQ(driver_.table, before_);
}

TEST_F(ConfigureVfsTest, SaysWhatCouldNotBePutBack) {
  driver_.refusals[{1, Attribute::trust}] = EIO;
  driver_.table[1].mac.reset();  // the earlier MAC cannot be read
  before_ = driver_.table;
  driver_.table[1].mac = mac(9);
  driver_.hidden = {1};
  EXPECT_THAT(failure({Attribute::trust}), HasSubstr("not put back: mac of VF 1 (its earlier"));
}

TEST_F(ConfigureVfsTest, ALateMacIsWaitedFor) {
  driver_.lateReads = 3;
  deadline_ = std::chrono::seconds(10);
  EXPECT_THAT(run({Attribute::mac}), IsEmpty());
  EXPECT_GE(driver_.reads, 5);
}

TEST_F(ConfigureVfsTest, AcceptedButNeverAppliedIsARefusal) {
  driver_.ignored = {Attribute::trust};
  const auto refused = run();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].attribute, Attribute::trust);
  EXPECT_EQ(refused[0].reason, "accepted, but reads back as off");
  EXPECT_THAT(failure({Attribute::trust}), HasSubstr("reads back as off"));
  EXPECT_EQ(driver_.table[1].trust, false);
}

TEST_F(ConfigureVfsTest, WhatCannotBeObservedIsTakenAsSent) {
  driver_.blind = true;
  wanted_ = {};
  wanted_.nodeGuid = Guid{5};
  wanted_.portGuid = Guid{6};
  EXPECT_THAT(run({Attribute::nodeGuid, Attribute::portGuid}), IsEmpty());
  EXPECT_EQ(driver_.table[1].portGuid, Guid{6});
  EXPECT_EQ(driver_.reads, 2);
}

TEST_F(ConfigureVfsTest, AVfThatTheReplyLeavesOutIsSetAllTheSame) {
  driver_.hidden = {1};
  EXPECT_THAT(run({Attribute::mac}), IsEmpty());
  EXPECT_EQ(driver_.table[1].mac, mac(1));
}

TEST_F(ConfigureVfsTest, WithoutPermissionItSaysSoAtOnce) {
  for (const Attribute attribute : allAttributes) {
    driver_.refusals[{1, attribute}] = EPERM;
  }
  EXPECT_THAT(failure({}), HasSubstr("EPERM"));
  EXPECT_EQ(driver_.sent.size(), 1U);
  EXPECT_THAT(remedy_, HasSubstr("Run as root"));
}

// mlx5 answers so where the PF does not manage the embedded switch (BlueField in DPU mode).
TEST_F(ConfigureVfsTest, RefusalOfAPrivilegedProcessIsTheDriversOwn) {
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
