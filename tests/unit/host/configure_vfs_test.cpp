#include "sriov/pf_and_vfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>

#include "unit/values.hpp"
#include "vfpass/error.hpp"
#include "vfpass/mlx5_firmware.hpp"

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
  std::set<Attribute> stored;   ///< if refused, they read back all the same, as mlx5's MAC and VLAN
  int refusedWrites = 1000;     ///< how many refused values are stored
  std::set<Attribute> ignored;  ///< accepted, never applied
  std::set<unsigned> hidden;    ///< VFs that are missing from the reply
  bool blind = false;           ///< GUIDs never read back
  int hiddenReads = 0;          ///< number of reads until the hidden VFs appear
  int lateReads = 0;            ///< number of reads until a new MAC is visible
  int reads = 0;
  std::vector<std::vector<VfRequest>> sent;
  std::vector<std::string> kernelLog;  ///< as mlx5's MAC and spoof check write it

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
    if (hiddenReads > 0 && --hiddenReads == 0) {
      hidden.clear();
    }
    return shown;
  }

  Acknowledgement set(const std::vector<VfRequest>& requests) override {
    sent.push_back(requests);
    for (const VfRequest& request : requests) {
      for (const Attribute attribute : differingAttributes(request.settings, {})) {
        const int error = errorOf(request, attribute);
        if (error == 0 || (stored.contains(attribute) && --refusedWrites >= 0)) {
          apply(request, attribute);
        }
        if (error != 0) {
          return {error, "refused by firmware"};
        }
      }
    }
    return {};
  }

  /// Messages that set this attribute of VF 1 alone to this value.
  [[nodiscard]] std::ptrdiff_t timesSentAlone(const VfSettings& settings) const {
    return std::ranges::count(sent, std::vector<VfRequest>{{1, settings}});
  }

 private:
  // mlx5 makes the rules of a VF anew for each MAC, VLAN and spoof check: while a stored VLAN
  // fails, the others fail, too. No VLAN needs no rules.
  [[nodiscard]] int errorOf(const VfRequest& request, Attribute attribute) const {
    const auto refusal = refusals.find({request.index, attribute});
    const bool removesVlan = attribute == Attribute::vlan && request.settings.vlan == Vlan{};
    if (refusal != refusals.end() && !removesVlan) {
      return refusal->second;
    }
    const bool sharesRules = attribute == Attribute::mac || attribute == Attribute::spoofCheck;
    const auto vlan = refusals.find({request.index, Attribute::vlan});
    const bool fails = sharesRules && vlan != refusals.end() &&
                       table.at(request.index).vlan.value_or(Vlan{}) != Vlan{};
    return fails ? vlan->second : 0;
  }

  void apply(const VfRequest& request, Attribute attribute) {
    VfSettings& settings = table[request.index];
    if (ignored.contains(attribute)) {
      return;
    }
    switch (attribute) {
      case Attribute::mac:
        if (settings.spoofCheck == true && request.settings.mac->isZero()) {
          kernelLog.emplace_back("Set invalid MAC while spoofchk is on");
        }
        late_[request.index] = *settings.mac;
        settings.mac = request.settings.mac;
        break;
      case Attribute::spoofCheck:
        if (settings.spoofCheck == true && settings.mac.value_or(mac(1)).isZero()) {
          kernelLog.emplace_back("Spoofchk in set while MAC is invalid");
        }
        settings.spoofCheck = request.settings.spoofCheck;
        break;
      default:
        settings = firstOf(only(request.settings, {attribute}), settings);
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

// mlx5 keeps a VLAN whose rules it could not make, and reads it back.
TEST_F(ConfigureVfsTest, BelievesRefusalOfStoredAttribute) {
  driver_.refusals[{1, Attribute::vlan}] = ENOSPC;
  driver_.stored = {Attribute::vlan};
  const auto refused = run({Attribute::mac});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].attribute, Attribute::vlan);
  EXPECT_THAT(refused[0].reason, HasSubstr("ENOSPC"));
  EXPECT_EQ(driver_.table[1].vlan, Vlan{});
  EXPECT_EQ(driver_.table[1].mac, mac(1));
  EXPECT_EQ(driver_.table[1].trust, true);
}

TEST_F(ConfigureVfsTest, FailsForRequiredAttributeThatIsStoredAndRefused) {
  driver_.refusals[{1, Attribute::vlan}] = ENOSPC;
  driver_.stored = {Attribute::vlan};
  EXPECT_THAT(failure({Attribute::vlan}),
              AllOf(HasSubstr("cannot set vlan of VF 1 to 100 qos 3 802.1Q: "),
                    HasSubstr("the previous attributes were restored")));
  EXPECT_EQ(driver_.table, before_);
}

TEST_F(ConfigureVfsTest, RestoresStoredMac) {
  driver_.refusals[{1, Attribute::mac}] = EIO;
  driver_.stored = {Attribute::mac};
  const auto refused = run({Attribute::vlan});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].attribute, Attribute::mac);
  EXPECT_THAT(refused[0].reason, HasSubstr("mac of VF 1 reads back as before, but"));
  EXPECT_EQ(driver_.table[1].mac, before_[1].mac);
  EXPECT_EQ(driver_.table[1].vlan, wanted_.vlan);
}

// A refused spoof check reads back as before, but mlx5 has deleted the rules of the VF.
TEST_F(ConfigureVfsTest, SetsPreviousValueOfRefusedAttributeAgain) {
  wanted_ = {};
  wanted_.spoofCheck = false;
  driver_.refusals[{1, Attribute::spoofCheck}] = EIO;
  EXPECT_THAT(run()[0].reason,
              HasSubstr("spoof-check of VF 1 reads back as before, but the driver refuses that "
                        "value as well"));
  VfSettings previous;
  previous.spoofCheck = true;
  EXPECT_GE(driver_.timesSentAlone(previous), 1);
}

TEST_F(ConfigureVfsTest, ReportsThatPreviousValueIsRefusedToo) {
  driver_.refusals[{1, Attribute::trust}] = EIO;
  driver_.stored = {Attribute::trust};
  driver_.refusedWrites = 1;
  EXPECT_THAT(failure({Attribute::trust}),
              AllOf(HasSubstr("cannot restore trust of VF 1: "), HasSubstr("EIO")));
}

// After a failure, what reads back may have no rules.
TEST_F(ConfigureVfsTest, SendsAgainWhatReadsBack) {
  run();
  driver_.sent.clear();
  EXPECT_THAT(configureVfs(driver_, {{1, wanted_, {}}}, names_, deadline_, {}, Sent::all),
              IsEmpty());
  EXPECT_EQ(driver_.sent, (std::vector<std::vector<VfRequest>>{{{1, wanted_}}}));
}

TEST_F(ConfigureVfsTest, TellsAFailureFromARefusal) {
  driver_.refusals[{1, Attribute::vlan}] = EIO;
  driver_.refusals[{1, Attribute::trust}] = EOPNOTSUPP;
  const auto refused = run();
  ASSERT_EQ(refused.size(), 2U);
  for (const RefusedAttribute& each : refused) {
    EXPECT_EQ(each.failed, each.attribute == Attribute::vlan) << toString(each.attribute);
  }
}

TEST_F(ConfigureVfsTest, IgnoresRefusalOfWhatReadsBack) {
  wanted_ = {};
  wanted_.rate = Rate{};
  driver_.refusals[{1, Attribute::rate}] = EOPNOTSUPP;  // as a card without QoS does
  const auto send = [&] {
    return configureVfs(driver_, {{1, wanted_, {}}}, names_, deadline_, {}, Sent::all);
  };
  EXPECT_THAT(send(), IsEmpty());
  driver_.refusals[{1, Attribute::rate}] = EIO;  // or the next command would find it pending, too
  EXPECT_THAT(send(), IsEmpty());
}

TEST_F(ConfigureVfsTest, SendsAttributesOfOtherVfsTogether) {
  driver_.refusals[{0, Attribute::vlan}] = ENOSPC;
  driver_.stored = {Attribute::vlan};
  const auto refused =
      configureVfs(driver_, {{0, wanted_, {}}, {2, wanted_, {}}}, names_, deadline_);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].vfIndex, 0U);
  VfSettings together = wanted_;
  together.spoofCheck.reset();
  EXPECT_EQ(driver_.sent.back(), (std::vector<VfRequest>{{2, together}}));
  EXPECT_EQ(driver_.table[2].vlan, wanted_.vlan);
}

TEST_F(ConfigureVfsTest, RestoresMacThatWouldBeAppliedLate) {
  driver_.lateReads = 1000;
  driver_.refusals[{1, Attribute::trust}] = EIO;
  failure({Attribute::trust});
  EXPECT_EQ(driver_.table[1].mac, before_[1].mac);
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
  EXPECT_THAT(failure({Attribute::trust}),
              HasSubstr("cannot restore mac of VF 1: its previous value is not observable"));
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

// A driver that accepts a value and does not set it is found out, whatever the attribute is.
TEST_F(ConfigureVfsTest, ReadsBackEveryAttribute) {
  ASSERT_EQ(differingAttributes(everySetting(), {}).size(), std::size(allAttributes));
  for (const Attribute attribute : allAttributes) {
    driver_.table = before_;
    driver_.table[1] = everyOtherSetting();
    driver_.ignored = {attribute};
    wanted_ = everySetting();
    const auto refused = run();
    ASSERT_EQ(refused.size(), 1U) << toString(attribute);
    EXPECT_EQ(refused[0].attribute, attribute);
    EXPECT_THAT(failure({attribute}), HasSubstr("reads back as")) << toString(attribute);
  }
}

// Other VFs have the vectors; a driver that is bound is a state of the device.
TEST_F(ConfigureVfsTest, TooFewVectorsAreARefusal) {
  for (const auto& [error, failed] : std::map<int, bool>{
           {EINVAL, false}, {EOVERFLOW, false}, {ENOMEM, false}, {EBUSY, true}, {EIO, true}}) {
    driver_.table = before_;
    driver_.table[1].msixVectors = 12;
    driver_.refusals = {{{1, Attribute::msixVectors}, error}};
    wanted_ = {};
    wanted_.msixVectors = 17;
    const auto refused = run();
    ASSERT_EQ(refused.size(), 1U) << error;
    EXPECT_EQ(refused[0].failed, failed) << error;
  }
}

// The number may be that of `auto`.
TEST_F(ConfigureVfsTest, NamesTheLimitOfOneVf) {
  driver_.table[1].msixVectors = 12;
  driver_.refusals = {{{1, Attribute::msixVectors}, EOVERFLOW}};
  wanted_ = {};
  wanted_.msixVectors = 65;
  failure({Attribute::msixVectors});
  EXPECT_THAT(remedy_, AllOf(HasSubstr("more than the card allows for one VF"),
                             HasSubstr("smaller number"), testing::Not(HasSubstr("auto"))));
}

TEST_F(ConfigureVfsTest, FirstShrinksThenGrows) {
  VfSettings more;
  more.msixVectors = 10;
  VfSettings fewer;
  fewer.msixVectors = 2;
  driver_.table[0].msixVectors = 2;
  driver_.table[2].msixVectors = 10;
  driver_.refusals = {{{0, Attribute::msixVectors}, ENOMEM}};
  configureVfs(driver_, {{0, more, {}}, {2, fewer, {}}}, names_, deadline_);
  ASSERT_GE(driver_.sent.size(), 3U);
  EXPECT_EQ(driver_.sent[1], (std::vector<VfRequest>{{2, fewer}}));
  EXPECT_EQ(driver_.sent[2], (std::vector<VfRequest>{{0, more}}));
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

TEST_F(ConfigureVfsTest, TreatsVfMissingFromReplyAsNotConfigured) {
  driver_.hidden = {1};
  EXPECT_THAT(failure({Attribute::mac}),
              AllOf(HasSubstr("cannot set mac of VF 1"),
                    HasSubstr("accepted, but the driver does not report it")));
  EXPECT_THAT(remedy_, HasSubstr("ip link show"));
}

// rtnetlink omits a VF while the driver resets the device.
TEST_F(ConfigureVfsTest, WaitsForVfThatIsMissingDuringReset) {
  driver_.hidden = {1};
  driver_.hiddenReads = 4;
  deadline_ = std::chrono::seconds(10);
  EXPECT_THAT(run({Attribute::mac}), IsEmpty());
  EXPECT_EQ(driver_.reads, 5);
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
  names_.deniedRemedy = deniedRemedy(0x15b3, 0xa2dc);
  EXPECT_THAT(failure({Attribute::mac}), HasSubstr("EPERM"));
  EXPECT_THAT(remedy_, AllOf(HasSubstr("DPU mode"), testing::Not(HasSubstr("root"))));
}

// A release requires nothing: there is nothing to clean that the host could have set.
TEST_F(ConfigureVfsTest, ReturnsOptionalAttributesThatDriverDenies) {
  for (const Attribute attribute : allAttributes) {
    driver_.refusals[{1, attribute}] = EPERM;
  }
  driver_.hidden = {1};
  names_.privileged = true;
  const auto refused = run({});
  ASSERT_FALSE(refused.empty());
  for (const RefusedAttribute& each : refused) {
    EXPECT_EQ(each.reason, "Operation not permitted (EPERM): refused by firmware");
  }
}

// The kernel stops at the MAC, so that nothing else was set.
TEST_F(ConfigureVfsTest, LeavesUnobservableAttributesAfterTheRefusedOneOutOfTheError) {
  for (const Attribute attribute : allAttributes) {
    driver_.refusals[{1, attribute}] = EPERM;
  }
  driver_.hidden = {1};
  names_.privileged = true;
  EXPECT_THAT(failure({Attribute::mac}), AllOf(HasSubstr("the previous attributes were restored"),
                                               testing::Not(HasSubstr("cannot restore"))));
}

// OFED refuses the VLAN of a VF with a VGT+ trunk in the same way.
TEST(DeniedRemedy, NamesBlueFieldOnlyForBlueField) {
  for (const std::uint16_t device : std::array<std::uint16_t, 4>{0xa2d2, 0xa2d6, 0xa2dc, 0xa2df}) {
    EXPECT_THAT(deniedRemedy(0x15b3, device), HasSubstr("BlueField"));
  }
  for (const std::uint16_t vendor : std::array<std::uint16_t, 2>{0x15b3, 0x8086}) {
    EXPECT_THAT(deniedRemedy(vendor, 0x101d),
                AllOf(testing::Not(HasSubstr("BlueField")), HasSubstr("VGT+ trunk")));
  }
}

TEST_F(ConfigureVfsTest, RollsBackAfterEpermOfRequiredAttribute) {
  driver_.refusals[{1, Attribute::trust}] = EPERM;
  names_.privileged = true;
  EXPECT_THAT(failure({Attribute::trust}),
              AllOf(HasSubstr("cannot set trust of VF 1"), HasSubstr("restored")));
  EXPECT_EQ(driver_.table, before_);
}

class ReleasedVfTest : public ConfigureVfsTest {
 protected:
  ReleasedVfTest() {
    driver_.table[1].mac = mac(1);
    driver_.table[1].vlan = Vlan{100, 0, VlanProtocol::dot1q};
    wanted_ = neutralSettings(false);
  }
};

TEST_F(ReleasedVfTest, LosesItsMacWithoutKernelWarning) {
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_EQ(driver_.table[1], neutralSettings(false));
  EXPECT_THAT(driver_.kernelLog, IsEmpty());
  EXPECT_EQ(driver_.sent.size(), 1U);
}

TEST_F(ReleasedVfTest, LosesItsMacWithoutKernelWarningWhenTheSpoofCheckWasOff) {
  driver_.table[1].spoofCheck = false;
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_EQ(driver_.table[1], neutralSettings(false));
  EXPECT_THAT(driver_.kernelLog, IsEmpty());
}

TEST_F(ReleasedVfTest, GetsNoSpoofCheckIfItHadNone) {
  wanted_.spoofCheck = false;
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_EQ(driver_.table[1].spoofCheck, false);
  EXPECT_THAT(driver_.kernelLog, IsEmpty());
}

TEST_F(ReleasedVfTest, KeepsTheSpoofCheckWhenAnotherAttributeIsRefused) {
  driver_.table[1].trust = true;
  driver_.refusals[{1, Attribute::trust}] = EIO;
  EXPECT_EQ(run().size(), 1U);
  VfSettings neutral = neutralSettings(false);
  neutral.trust = true;
  EXPECT_EQ(driver_.table[1], neutral);
}

// mlx5 in switchdev mode refuses every spoof check, and reads back what legacy mode had.
TEST_F(ReleasedVfTest, LosesItsMacWhereTheSpoofCheckIsRefused) {
  driver_.refusals[{1, Attribute::spoofCheck}] = EOPNOTSUPP;
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_EQ(driver_.table[1], neutralSettings(false));
}

class NewVfsTest : public ConfigureVfsTest {
 protected:
  std::vector<RefusedAttribute> create() {
    return configureVfs(driver_, {{1, wanted_, {Attribute::mac}}}, names_, deadline_,
                        neutralSettings(false));
  }
};

TEST_F(NewVfsTest, LoseWhatWasSetBeforeTheyExisted) {
  driver_.table[0].mac = mac(9);
  driver_.table[0].trust = true;
  driver_.table[1].rate = Rate{0, 100};  // not stated
  driver_.table[2].vlan = Vlan{7, 0, VlanProtocol::dot1q};
  EXPECT_THAT(create(), IsEmpty());
  EXPECT_EQ(driver_.table[0], neutralSettings(false));
  EXPECT_EQ(driver_.table[1], firstOf(wanted_, neutralSettings(false)));
  EXPECT_EQ(driver_.table[2], neutralSettings(false));
  EXPECT_EQ(driver_.sent.size(), 1U);
}

TEST_F(NewVfsTest, AreNotAskedForWhatTheDriverDoesNotReport) {
  driver_.table[0].trust.reset();
  EXPECT_THAT(create(), IsEmpty());
  EXPECT_EQ(driver_.table[0].trust, std::nullopt);
}

TEST_F(NewVfsTest, AskTheDriverOnceForWhatItDoesNotSupport) {
  for (unsigned vf = 0; vf < 40; ++vf) {
    driver_.table[vf] = neutralSettings(false);
    driver_.table[vf].spoofCheck = false;
    driver_.refusals[{vf, Attribute::spoofCheck}] = EOPNOTSUPP;
  }
  wanted_.spoofCheck.reset();
  const auto refused = create();
  EXPECT_EQ(refused.size(), 40U);
  EXPECT_EQ(driver_.table[1].mac, mac(1));
  EXPECT_LT(driver_.sent.size(), 10U);
}

TEST_F(NewVfsTest, MayBeRefusedNeutralValuesWithoutFailure) {
  driver_.table[2].trust = true;
  driver_.refusals[{2, Attribute::trust}] = EPERM;
  names_.privileged = true;
  const auto refused = create();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].vfIndex, 2U);
  EXPECT_EQ(driver_.table[1].mac, mac(1));
}

}  // namespace
}  // namespace vfpass::host
