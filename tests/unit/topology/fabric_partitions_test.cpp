#include "vfpass/topology/fabric_partitions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::topology {
namespace {

using testing::HasSubstr;
using Fit = PartitionJudgement::Outcome;

// Half a board, its pairs, and single GPUs, as the fabric manager of HGX H100 lists them. Module
// IDs do not follow addresses.
class FabricPartitionTest : public testing::Test {
 protected:
  FabricPartitionTest() {
    partitions = {{1, false, {{1, {}}, {2, {}}, {3, {}}, {4, {}}}},
                  {3, false, {{1, {}}, {3, {}}}},
                  {4, false, {{2, {}}, {4, {}}}},
                  {7, false, {{1, {}}}}};
  }
  void showAddresses() {
    for (FabricPartition& partition : partitions) {
      for (PartitionGpu& gpu : partition.gpus) {
        gpu.address = at(5 - gpu.module);
      }
    }
  }
  static PciAddress at(unsigned bus) { return {0, static_cast<std::uint8_t>(bus), 0, 0}; }
  PartitionJudgement judge(const std::vector<PartitionedGpu>& gpus) {
    return judgePartition(partitions, gpus);
  }

  std::vector<FabricPartition> partitions;
};

TEST_F(FabricPartitionTest, IsTheOneWithExactlyTheGpus) {
  showAddresses();
  const auto pair = judge({{at(4)}, {at(2)}});  // modules 1 and 3
  EXPECT_EQ(pair.outcome, Fit::fits);
  EXPECT_EQ(pair.partition->id, 3U);
  EXPECT_EQ(pair.summary,
            "partition 3 of the fabric manager holds exactly these GPUs and is not active");
  partitions[0].active = true;
  const auto half = judge({{at(1)}, {at(2)}, {at(3)}, {at(4)}});
  EXPECT_EQ(half.outcome, Fit::fits);
  EXPECT_THAT(half.summary, HasSubstr("partition 1 of the fabric manager holds exactly these GPUs "
                                      "and is active"));
}

TEST_F(FabricPartitionTest, IsFoundByTheMappingsModulesWhereAddressesAreUnknown) {
  EXPECT_EQ(judge({{at(4), 1}, {at(2), 3}}).partition->id, 3U);
  const auto judgement = judge({{at(4), 1}, {at(2)}});
  EXPECT_EQ(judgement.outcome, Fit::unknown);
  EXPECT_THAT(judgement.summary, HasSubstr("which of its modules 0000:02:00.0 is"));
  EXPECT_THAT(judgement.remedy, HasSubstr("nvlink-module"));
  EXPECT_THAT(judgement.remedy, HasSubstr("`fmpm -l` shows its number (physicalId)"))
      << "not NVML's module ID, which is another one on some boards";
}

TEST_F(FabricPartitionTest, DoesNotExistForOtherGpus) {
  showAddresses();
  const auto judgement = judge({{at(4)}, {at(3)}});  // modules 1 and 2
  EXPECT_EQ(judgement.outcome, Fit::none);
  EXPECT_THAT(judgement.summary, HasSubstr("holds exactly these GPUs (module IDs 1, 2)"));
  EXPECT_THAT(judgement.remedy, HasSubstr("partition 3 (0000:04:00.0, 0000:02:00.0), partition 4"));
  EXPECT_THAT(judge({{at(4)}, {at(3)}, {at(2)}}).remedy, HasSubstr("no partition of 3 GPUs"));
  EXPECT_EQ(judgePartition({}, {{at(4), 1}}).outcome, Fit::none);
}

TEST_F(FabricPartitionTest, IsBlockedByAnActiveOneThatSharesAGpu) {
  partitions[0].active = true;
  const auto judgement = judge({{at(4), 1}});
  EXPECT_EQ(judgement.outcome, Fit::blocked);
  EXPECT_EQ(judgement.partition->id, 7U);
  EXPECT_THAT(judgement.summary,
              HasSubstr("partition 1 (module 1, module 2, module 3, module 4) is "
                        "active and has some of them"));
  EXPECT_THAT(judgement.remedy, HasSubstr("fmpm -d 1"));
  partitions[0].active = false;
  partitions[2].active = true;  // modules 2 and 4
  EXPECT_EQ(judge({{at(4), 1}}).outcome, Fit::fits);
}

TEST_F(FabricPartitionTest, MistakesOfTheMappingAreNamed) {
  EXPECT_THAT(judge({{at(4), 1}, {at(2), 1}}).summary,
              HasSubstr("two GPUs of the mapping have the module ID 1"));
  showAddresses();
  EXPECT_THAT(judge({{at(4), 2}}).summary,
              HasSubstr("0000:04:00.0 has the module ID 1 according to the fabric manager, and 2"));
  EXPECT_THAT(judge({{at(9), 2}}).summary,
              HasSubstr("the module ID 2 that 0000:09:00.0 has in the mapping is that of "
                        "0000:03:00.0"));
  EXPECT_EQ(judge({{at(9), 2}}).outcome, Fit::none);
}

}  // namespace
}  // namespace vfpass::topology
