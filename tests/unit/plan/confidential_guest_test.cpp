#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake/fake_kernel.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/plan/judge_confidential_guest.hpp"

namespace vfpass::plan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Verdict = ConfidentialVerdict;

ConfidentialTerms termsOf(const std::string& type, std::optional<Version> qemu = Version{11, 1}) {
  return {type, true, true, VfioBackend::container, qemu};
}

// The verdict of one use; nullopt if the judgement does not mention it.
std::optional<Verdict> verdictOf(const ConfidentialTerms& terms, const std::string& use) {
  const auto uses = judgeConfidentialGuest(terms).uses;
  const auto found = std::ranges::find(uses, use, &ConfidentialUse::use);
  return found == uses.end() ? std::nullopt : std::optional(found->verdict);
}

TEST(JudgeConfidentialGuest, StartsWithDevicesFromQemu101On) {
  for (const char* type : {"sev-snp", "tdx"}) {
    EXPECT_EQ(verdictOf(termsOf(type, Version{10, 1}), "start"), Verdict::possible) << type;
    EXPECT_EQ(verdictOf(termsOf(type, Version{10, 0}), "start"), Verdict::unknown) << type;
    EXPECT_EQ(verdictOf(termsOf(type, std::nullopt), "start"), Verdict::unknown) << type;
  }
  EXPECT_EQ(verdictOf(termsOf("sev", Version{7, 2}), "start"), Verdict::possible);
  EXPECT_EQ(verdictOf(termsOf("s390-pv"), "start"), Verdict::impossible);
  EXPECT_EQ(verdictOf(termsOf("unheard-of"), "start"), Verdict::unknown);
}

TEST(JudgeConfidentialGuest, BouncesDmaSoThatRdmaIsLimitedAndGpuDirectImpossible) {
  for (const char* type : {"sev", "sev-snp", "tdx"}) {
    EXPECT_EQ(verdictOf(termsOf(type), "RDMA"), Verdict::limited) << type;
    EXPECT_EQ(verdictOf(termsOf(type), "GPUDirect RDMA"), Verdict::impossible) << type;
  }
}

TEST(JudgeConfidentialGuest, SaysNothingOfUsesThatTheDevicesDoNotSuggest) {
  ConfidentialTerms terms = termsOf("tdx");
  terms.gpus = false;
  EXPECT_EQ(verdictOf(terms, "RDMA"), Verdict::limited);
  EXPECT_EQ(verdictOf(terms, "GPUDirect RDMA"), std::nullopt);
  terms = termsOf("tdx");
  terms.nics = false;
  EXPECT_EQ(verdictOf(terms, "RDMA"), std::nullopt);
  EXPECT_EQ(verdictOf(terms, "GPUDirect RDMA"), std::nullopt);
}

// SEV has no guest_memfd: QEMU maps all of its memory, and nothing is known of other types.
TEST(JudgeConfidentialGuest, LimitsMappingsOfContainersBesideGuestMemfd) {
  ConfidentialTerms terms = termsOf("sev-snp");
  EXPECT_EQ(verdictOf(terms, "DMA mappings"), Verdict::limited);
  terms.backend = VfioBackend::iommufd;
  EXPECT_EQ(verdictOf(terms, "DMA mappings"), std::nullopt);
  EXPECT_EQ(verdictOf(termsOf("sev"), "DMA mappings"), std::nullopt);
  EXPECT_EQ(judgeConfidentialGuest(termsOf("unheard-of")).uses.size(), 1U);
}

TEST(JudgeConfidentialGuest, DescribesOnlyWhatIsNotSimplyPossible) {
  EXPECT_THAT(describe(judgeConfidentialGuest(termsOf("sev"))),
              ElementsAre(HasSubstr("confidential guest (sev): RDMA is limited: "),
                          HasSubstr("(sev): GPUDirect RDMA is impossible: ")));
  EXPECT_THAT(describe(judgeConfidentialGuest(termsOf("\x1b[31m"))),
              ElementsAre(HasSubstr("(\\x1b[31m): start is uncertain: ")));
}

class AttachConfidential : public testing::Test {
 protected:
  AttachConfidential() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = input.mapping.vm = "train0";
    MappedVf vf;
    vf.name = "rail0";
    vf.pf.netdev = "ens1f0np0";
    input.mapping.vfs = {vf};
    input.placements = {{{0, 1, 0, 0}, RootPort{1, {0, 0, 2, 0}, false}, {}}};
    input.inventory = kernel.inventory();
    input.versions.qemu = Version{11, 1};
  }

  void mapGpu() {
    hosts::TopologyBuilder builder;
    static_cast<void>(builder.gpu("0000:04:00.0", builder.hostBridge("pci0000:00", 0)));
    input.topology = builder.topology;
    MappedFunction gpu;
    gpu.name = "gpu0";
    gpu.pci = *parsePciAddress("0000:04:00.0");
    input.mapping.functions = {gpu};
  }

  fake::FakeKernel kernel;
  AttachInput input;
};

TEST_F(AttachConfidential, WarnsAndAttaches) {
  EXPECT_THAT(planAttach(input).plan.notes, Not(Contains(HasSubstr("confidential guest"))));
  input.launchSecurity = "sev";
  const auto decision = planAttach(input);
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(decision.plan.notes, Contains(HasSubstr("(sev): RDMA is limited")));
  EXPECT_FALSE(decision.plan.steps.empty());
}

TEST_F(AttachConfidential, IsRefusedWhereQemuCannotStartIt) {
  input.launchSecurity = "s390-pv";
  const auto decision = planAttach(input);
  ASSERT_EQ(decision.objections.size(), 1U);
  EXPECT_THAT(decision.objections[0].message, HasSubstr("<launchSecurity type='s390-pv'>"));
  EXPECT_THAT(decision.objections[0].remedy, HasSubstr("remove the launchSecurity element"));
  EXPECT_TRUE(decision.plan.steps.empty());
}

TEST_F(AttachConfidential, WithoutDevicesIsNotJudged) {
  input.launchSecurity = "s390-pv";
  input.mapping.vfs.clear();
  EXPECT_FALSE(judgeConfidentialGuest(input).has_value());
  EXPECT_THAT(planAttach(input).objections, IsEmpty());
}

TEST_F(AttachConfidential, FindsGpuInMapping) {
  mapGpu();
  EXPECT_THAT(describeDevices(input), IsEmpty());
  input.launchSecurity = "tdx";
  EXPECT_THAT(describeDevices(input), Contains(HasSubstr("GPUDirect RDMA is impossible")));
}

}  // namespace
}  // namespace vfpass::plan
