#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "fake/fake_kernel.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Uuid otherDomain = *parseUuid("ffffffff-1111-4222-8333-944455566677");

// A mapping with one VF and one GPU.
class FunctionTest : public testing::Test {
 protected:
  FunctionTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    kernel.addFunction("0000:3a:00.0", "nvidia").serial = "G1";
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = "train0";
    input.mapping.vm = "train0";
    MappedVf vf;
    vf.name = "rail0";
    vf.pf.netdev = "ens1f0np0";
    input.mapping.vfs = {vf};
    input.mapping.functions = {gpu("gpu0", "0000:3a:00.0")};
    input.placements = {{{0, 1, 0, 0}, std::nullopt, {}}, {{0, 2, 0, 0}, std::nullopt, {}}};
    input.generation = 7;
    input.bootId = "boot";
  }

  static MappedFunction gpu(const std::string& name, const std::string& address) {
    return {name, *parsePciAddress(address), {"train0.yaml", 8, 5}};
  }
  Device& function() { return kernel.functions.begin()->second; }
  AttachDecision decide() {
    input.inventory = kernel.inventory();
    return planAttach(input);
  }
  Objection objection() {
    const auto decision = decide();
    EXPECT_THAT(decision.objections, SizeIs(1));
    EXPECT_THAT(decision.plan.steps, IsEmpty());
    return decision.objections.empty() ? Objection{} : decision.objections[0];
  }
  // The function's lease after an attach, with the function on vfio-pci.
  Lease attached() {
    const Lease lease = decide().leases.at(1);
    function().driver = function().driverOverride = "vfio-pci";
    return lease;
  }

  fake::FakeKernel kernel;
  AttachInput input;
};

// Three of a board's four NVSwitches in one group with the fourth: it is proposed once.
TEST_F(FunctionTest, ProposesAMissingFunctionOfAGroupOnce) {
  for (const char* address : {"0000:3b:00.0", "0000:3c:00.0", "0000:3d:00.0"}) {
    Device& each = kernel.addFunction(address, "nvidia-nvswitch");
    each.groupPeers = {{*parsePciAddress("0000:3e:00.0"), 0x068000, ""}};
    input.mapping.functions.push_back(gpu("s" + std::to_string(each.address.bus), address));
    input.placements.push_back({{0, each.address.bus, 0, 0}, std::nullopt, {}});
  }
  const auto found = objection();
  EXPECT_THAT(found.message, HasSubstr("shares IOMMU group"));
  EXPECT_THAT(found.remedy, HasSubstr("0000:3e:00.0"));
  // The same function as a part of the board: only that problem.
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  static_cast<void>(builder.gpu("0000:3a:00.0", bridge));
  for (const char* address : {"0000:3b:00.0", "0000:3c:00.0", "0000:3d:00.0", "0000:3e:00.0"}) {
    static_cast<void>(builder.function(FunctionRole::nvswitch, address, bridge));
  }
  input.topology = builder.topology;
  input.mapping.nvlink = NvlinkMode::all;
  EXPECT_THAT(objection().message, HasSubstr("`nvlink: all` needs all 1 GPU and 4 NVSwitches"));
}

TEST_F(FunctionTest, SaysOnceThatTheIommuIsOff) {
  function().iommuGroup.reset();
  input.inventory = kernel.inventory();
  input.inventory.iommuPresent = false;
  for (auto& vf : input.inventory.pfs[0].vfs) {
    vf.iommuGroup.reset();
  }
  const auto decision = planAttach(input);
  ASSERT_THAT(decision.objections, SizeIs(1));
  EXPECT_THAT(decision.objections[0].message, HasSubstr("the IOMMU is off"));
  EXPECT_THAT(decision.objections[0].remedy, HasSubstr("`vfpass doctor`"));
  EXPECT_EQ(decision.objections[0].code, ExitCode::failed) << "it disrupts nothing";
  EXPECT_THAT(decision.plan.steps, IsEmpty());
}

TEST_F(FunctionTest, RefusesFunctionOfLibvirtNetworkPool) {
  input.pools = {{"others", {*parsePciAddress("0000:3b:00.0")}, {"ens9"}}};
  EXPECT_THAT(decide().objections, IsEmpty());
  input.pools.push_back({"pool", {*parsePciAddress("0000:3a:00.0")}, {}});
  EXPECT_THAT(objection().message, HasSubstr("libvirt network pool"));
}

TEST_F(FunctionTest, KeepsLeasedFunctionAddedToLibvirtNetworkPool) {
  input.leases = {attached()};
  input.pools = {{"pool", {*parsePciAddress("0000:3a:00.0")}, {}}};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(FunctionTest, FunctionIsLeasedAndBoundButNotConfigured) {
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  ASSERT_THAT(decision.plan.steps, SizeIs(6));
  EXPECT_EQ(describe(decision.plan.steps[1].action),
            "lease PCI function 0000:3a:00.0 as gpu0 (reserved)");
  EXPECT_THAT(std::get<ConfigureVfs>(decision.plan.steps[2].action).vfs, SizeIs(1));
  const Step& bind = decision.plan.steps[4];
  EXPECT_EQ(std::get<BindDriver>(bind.action).driver, "vfio-pci");
  EXPECT_EQ(bind.reason, "it is bound to nvidia");
  EXPECT_TRUE(bind.disrupts);
  EXPECT_EQ(std::get<BindDriver>(bind.undo.at(0)).driver, "nvidia");
  EXPECT_EQ(lockedPfs(decision.plan),
            (std::vector{*parsePciAddress("0000:01:00.0"), function().address}));
}

TEST_F(FunctionTest, LeaseRecordsOriginalDriverAndIdentity) {
  function().driverOverride = "nvidia";
  const Lease lease = decide().leases.at(1);
  EXPECT_FALSE(isVf(lease));
  EXPECT_EQ(lease.pf, function().address);
  EXPECT_EQ(lease.device, function().address);
  EXPECT_EQ(lease.pfPath, function().path);
  EXPECT_EQ(lease.pfSerial, "G1");
  EXPECT_EQ(lease.original.driver, "nvidia");
  EXPECT_EQ(lease.original.driverOverride, "nvidia");
  EXPECT_FALSE(lease.original.created);
  EXPECT_EQ(lease.guest, input.placements[1]) << "VFs have the first places";
}

TEST_F(FunctionTest, SecondAttachHasNoSteps) {
  input.leases = decide().leases;
  input.xmlCurrent = true;
  function().driver = function().driverOverride = "vfio-pci";
  function().vfioInUse = true;  // by the same guest
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(decision.plan.steps, IsEmpty());
}

TEST_F(FunctionTest, RejectsMissingFunction) {
  input.mapping.functions = {gpu("gpu0", "0000:7f:00.0")};
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::badInput);
  EXPECT_EQ(problem.message, "train0.yaml:8:5: this host has no PCI function 0000:7f:00.0 (gpu0)");
}

TEST_F(FunctionTest, RefusesBridge) {
  for (const std::uint32_t classCode : {0x060000U, 0x060400U, 0x068000U}) {
    function().classCode = classCode;
    const auto problem = objection();
    EXPECT_EQ(problem.code, ExitCode::refused);
    EXPECT_THAT(problem.message, HasSubstr("is a bridge"));
  }
}

TEST_F(FunctionTest, RejectsVfUnderGpus) {
  function().physicalFunction = parsePciAddress("0000:01:00.0");
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::badInput);
  EXPECT_THAT(problem.message, HasSubstr("is a VF of PF 0000:01:00.0"));
  EXPECT_THAT(problem.remedy, HasSubstr("`vfs:`"));
}

TEST_F(FunctionTest, RefusesPfWithVfs) {
  function().vfCount = 3;
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::refused);
  EXPECT_THAT(problem.message, HasSubstr("is a PF with 3 VFs"));
}

TEST_F(FunctionTest, RejectsPfOfOtherEntry) {
  input.mapping.vfs[0].pf = {};
  input.mapping.vfs[0].pf.pci = parsePciAddress("0000:01:00.0");
  input.mapping.functions = {gpu("gpu0", "0000:01:00.0")};
  kernel.addFunction("0000:01:00.0", "mlx5_core");
  EXPECT_THAT(objection().message, HasSubstr("0000:01:00.0 of gpu0 is the PF of rail0"));
  EXPECT_EQ(objection().code, ExitCode::badInput);
}

TEST_F(FunctionTest, RefusesBootDisplay) {
  function().bootVga = true;
  EXPECT_THAT(objection().message, HasSubstr("is the host's boot display"));
  EXPECT_EQ(objection().code, ExitCode::refused);
}

TEST_F(FunctionTest, RefusesFunctionInUseAndNamesHolders) {
  function().uses = {"nvme0n1p1 is mounted at /data", "nvme0n1p2 is swap space"};
  const auto objections = decide().objections;
  ASSERT_THAT(objections, SizeIs(2));
  EXPECT_EQ(objections[0].code, ExitCode::refused);
  EXPECT_THAT(objections[0].message, HasSubstr("nvme0n1p1 is mounted at /data"));
  EXPECT_THAT(objections[1].message, HasSubstr("nvme0n1p2 is swap space"));
  function().uses.clear();
  function().vfioInUse = true;
  EXPECT_THAT(objection().message, HasSubstr("open through VFIO"));
}

TEST_F(FunctionTest, RefusesNetdevInUseUnlessAllowed) {
  function().netdevs = {{"eth7", 9, true, false}};
  EXPECT_THAT(objection().message, HasSubstr("netdev eth7 is up"));
  function().netdevs = {{"eth7", 9, false, true}};
  EXPECT_THAT(objection().message, HasSubstr("netdev eth7 has a master"));
  input.mapping.allow = {Allowance::netdevInUse};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(FunctionTest, RefusesMissingIommuGroupAndUnsafeInterrupts) {
  function().iommuGroup.reset();
  EXPECT_THAT(objection().message, HasSubstr("has no IOMMU group"));
  function().iommuGroup = 7;
  input.mapping.vfs.clear();
  input.inventory = kernel.inventory();
  input.inventory.unsafeInterrupts = true;
  EXPECT_THAT(planAttach(input).objections.at(0).message, HasSubstr("allow_unsafe_interrupts=Y"));
  input.mapping.allow = {Allowance::unsafeInterrupts};
  EXPECT_THAT(planAttach(input).objections, IsEmpty());
}

TEST_F(FunctionTest, RefusesFunctionWhoseLockTheKernelHolds) {
  function().locked = true;
  EXPECT_THAT(objection().message, HasSubstr("is locked in the kernel"));
}

TEST_F(FunctionTest, AcceptsBridgesInGroupUnlessBoundToOtherDriver) {
  function().groupPeers = {{*parsePciAddress("0000:39:00.0"), 0x060400, "pcieport"},
                           {*parsePciAddress("0000:39:01.0"), 0x060400, ""}};
  EXPECT_THAT(decide().objections, IsEmpty());
  function().groupPeers[1].driver = "shpchp";
  EXPECT_THAT(objection().message, HasSubstr("with 0000:39:01.0:"));
}

TEST_F(FunctionTest, RemedyListsCompanionsOfSharedGroup) {
  function().groupPeers = {{*parsePciAddress("0000:3a:00.1"), 0x040300, "snd_hda_intel"}};
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::refused);
  EXPECT_THAT(problem.message, HasSubstr("shares IOMMU group 200 with 0000:3a:00.1"));
  EXPECT_THAT(problem.remedy, HasSubstr("\n  - {name: gpu0-audio, pci: \"0000:3a:00.1\"}\n"));

  kernel.addFunction("0000:3a:00.1", "snd_hda_intel").groupPeers = {
      {function().address, 0x030200, "nvidia"}};
  input.mapping.functions.push_back(gpu("gpu0-audio", "0000:3a:00.1"));
  EXPECT_THAT(decide().objections, IsEmpty());
  input.mapping.functions.pop_back();
  input.mapping.allow = {Allowance::sharedIommuGroup};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(FunctionTest, AcceptsVfAndFunctionOfOneMappingInOneGroup) {
  auto& vf = kernel.pfs.begin()->second.vfs[0];
  input.mapping.vfs[0].index = 0;
  vf.groupPeers = {{function().address, 0x030200, "nvidia"}};
  function().groupPeers = {{vf.address, 0x020000, "mlx5_core"}};
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  const auto& leases = decision.leases;
  EXPECT_THAT(
      planPrepare(input.domain, "train0", leases, leases, kernel.inventory(), "boot").objections,
      IsEmpty());
  input.mapping.functions.clear();
  EXPECT_THAT(objection().message, HasSubstr("shares IOMMU group"));
}

TEST_F(FunctionTest, PlugsLeasedFunctionThatSharesItsGroupWithCompanion) {
  kernel.addFunction("0000:3a:00.1", "snd_hda_intel");
  function().groupPeers = {{*parsePciAddress("0000:3a:00.1"), 0x040300, "snd_hda_intel"}};
  input.mapping.functions.push_back(gpu("gpu0-audio", "0000:3a:00.1"));
  input.placements.push_back({{0, 3, 0, 0}, std::nullopt, {}});
  input.leases = decide().leases;
  input.active = input.scope.live = true;
  input.pluggable = {"rail0", "gpu0", "gpu0-audio"};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(FunctionTest, ProposedEntriesHaveUnusedNames) {
  function().groupPeers = {{*parsePciAddress("0000:3a:00.1"), 0x040300, ""},
                           {*parsePciAddress("0000:3a:00.2"), 0x0c0330, ""},
                           {*parsePciAddress("0000:3a:00.3"), 0x0c8000, ""},
                           {*parsePciAddress("0000:3a:00.4"), 0x040300, ""},
                           {*parsePciAddress("0000:3a:00.5"), 0xff0000, ""}};
  input.mapping.vfs[0].name = "gpu0-audio";
  const std::string remedy = objection().remedy;
  EXPECT_THAT(remedy, HasSubstr("{name: gpu0-audio2, pci: \"0000:3a:00.1\"}"));
  EXPECT_THAT(remedy, HasSubstr("{name: gpu0-usb, pci: \"0000:3a:00.2\"}"));
  EXPECT_THAT(remedy, HasSubstr("{name: gpu0-ucsi, pci: \"0000:3a:00.3\"}"));
  EXPECT_THAT(remedy, HasSubstr("{name: gpu0-audio3, pci: \"0000:3a:00.4\"}"));
  EXPECT_THAT(remedy, HasSubstr("{name: gpu0-companion, pci: \"0000:3a:00.5\"}"));
}

TEST_F(FunctionTest, BridgeOfGroupIsNotProposed) {
  function().groupPeers = {{*parsePciAddress("0000:00:1f.0"), 0x060100, ""}};
  EXPECT_THAT(objection().remedy, testing::StartsWith("enable ACS"));
}

TEST_F(FunctionTest, RefusesBusResetSharedWithOtherFunctions) {
  function().resetMethods.emplace();
  function().busPeers = {{*parsePciAddress("0000:3a:00.1"), 0x040300, "snd_hda_intel"}};
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::refused);
  EXPECT_THAT(problem.message, HasSubstr("can be reset only with its bus"));
  EXPECT_THAT(problem.message, HasSubstr("0000:3a:00.1"));
  EXPECT_THAT(problem.remedy, HasSubstr("{name: gpu0-audio, pci: \"0000:3a:00.1\"}"));
  kernel.addFunction("0000:3a:00.1", "snd_hda_intel");
  input.mapping.functions.push_back(gpu("gpu0-audio", "0000:3a:00.1"));
  EXPECT_THAT(decide().objections, IsEmpty());
}

std::optional<std::string> recordedDriver(const AttachDecision& decision) {
  return std::get<LeasedFunction>(decision.leases.at(1).part).vfioDriver;
}

TEST_F(FunctionTest, LeaseRecordsBestMatchingVfioDriver) {
  EXPECT_EQ(recordedDriver(decide()), std::nullopt);
  function().vfioDriver = "nvgrace_gpu_vfio_pci";
  const auto decision = decide();
  EXPECT_EQ(recordedDriver(decision), "nvgrace_gpu_vfio_pci");
  EXPECT_EQ(std::get<BindDriver>(decision.plan.steps[4].action),
            (BindDriver{function().address, "nvgrace_gpu_vfio_pci", "nvgrace_gpu_vfio_pci"}));
  input.mapping.functions[0].driver = "vfio-pci";
  EXPECT_EQ(recordedDriver(decide()), std::nullopt);
  input.mapping.functions[0].driver = "nvgrace_gpu_vfio_pci";
  function().vfioDriver = "vfio-pci";
  EXPECT_EQ(recordedDriver(decide()), "nvgrace_gpu_vfio_pci");
}

TEST_F(FunctionTest, ReleaseResetsWithAnyVfioDriver) {
  function().vfioDriver = "nvgrace_gpu_vfio_pci";
  Lease lease = decide().leases.at(1);
  lease.state = LeaseState::running;
  function().driver = function().driverOverride = "nvgrace_gpu_vfio_pci";
  const Plan plan = planRelease(input.domain, "train0", {lease}, kernel.inventory(), input.bootId);
  EXPECT_TRUE(std::ranges::any_of(plan.steps, [](const Step& step) {
    return std::holds_alternative<ResetFunction>(step.action);
  }));
}

TEST_F(FunctionTest, RefusesGpuInUseByProcessDespiteAllowances) {
  kernel.holders = {{HolderKind::gpu, function().address, "python3 (pid 9) has /dev/nvidia0 open",
                     "wait until it ends", std::nullopt}};
  input.mapping.allow = {Allowance::netdevInUse, Allowance::unknownHolder};
  EXPECT_EQ(objection().code, ExitCode::refused);
  EXPECT_THAT(objection().message, HasSubstr("python3 (pid 9)"));
  EXPECT_EQ(objection().remedy, "wait until it ends");
}

// Two GPUs and an NVSwitch; the first GPU is known to the kernel.
TEST_F(FunctionTest, RejectsGpusThatCouldNotInitialize) {
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  builder.gpu("0000:3a:00.0", bridge);
  builder.gpu("0000:3b:00.0", bridge);
  builder.function(FunctionRole::nvswitch, "0000:3c:00.0", bridge);
  input.topology = builder.topology;
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::badInput);
  EXPECT_THAT(problem.message, HasSubstr("train0.yaml:8:5: gpu0: the mapping has 1 of the 2 GPUs"));
  input.mapping.nvlink = NvlinkMode::disabled;
  EXPECT_THAT(decide().objections, IsEmpty());
  EXPECT_THAT(describeDevices(input),
              testing::ElementsAre("gpu0: driver vfio-pci, reset methods unknown",
                                   HasSubstr("NVLink: disabled in the guest")));
}

// One GPU of two as a partition.
TEST_F(FunctionTest, RejectsGpusThatAreNoPartition) {
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  builder.gpu("0000:3a:00.0", bridge);
  builder.gpu("0000:3b:00.0", bridge);
  const auto nvswitch = builder.function(FunctionRole::nvswitch, "0000:3c:00.0", bridge);
  builder.topology.functions[nvswitch].driver = "nvidia-nvswitch";
  input.topology = builder.topology;
  input.mapping.nvlink = NvlinkMode::partition;
  input.mapping.functions[0].nvlinkModule = 1;
  input.partitions = {{FabricPartition{0, false, {{1, {}}, {2, {}}}}}};
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::badInput);
  EXPECT_THAT(problem.message,
              HasSubstr("train0.yaml:8:5: gpu0: no partition of the fabric manager"));
  input.partitions->push_back({1, false, {{1, {}}}});
  EXPECT_THAT(decide().plan.notes, testing::Contains(HasSubstr("each start activates it")));
  input.partitions->back().active = true;
  EXPECT_EQ(
      partitionNote(input),
      "NVLink: partition 1 of the fabric manager holds exactly these GPUs and is active; each "
      "start activates it, each stop deactivates it");
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), 1U);
  input.partitions.reset();
  EXPECT_EQ(partitionNote(input), "");
  input.partitionProblem = "fmpm does not answer";
  EXPECT_THAT(decide().objections, IsEmpty());
  EXPECT_THAT(partitionNote(input), HasSubstr("fmpm does not answer; activate their partition"));
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), std::nullopt);
}

// The fabric manager no longer knows the address of the GPU, or does not answer.
TEST_F(FunctionTest, KeepsTheRecordedModuleOfAGpu) {
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  builder.gpu("0000:3a:00.0", bridge);
  builder.topology.functions[builder.function(FunctionRole::nvswitch, "0000:3c:00.0", bridge)]
      .driver = "nvidia-nvswitch";
  input.topology = builder.topology;
  input.mapping.nvlink = NvlinkMode::partition;
  input.partitions = {{FabricPartition{1, false, {{4, function().address}}}}};
  input.fabricClient = true;
  input.leases = {attached()};
  EXPECT_EQ(nvlinkModuleOf(input.leases[0]), 4U);
  input.partitions->at(0).gpus[0].address.reset();
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), 4U);
  input.partitions.reset();
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), 4U);
  input.mapping.functions[0].nvlinkModule = 5;
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), 5U) << "what the mapping states comes first";
  const std::vector<Lease> leases = std::exchange(input.leases, {});
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), 5U);
  input.leases = leases;
  input.fabricClient = false;
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), std::nullopt) << "the way out";
}

// The mapping gives one GPU the module that an earlier attach has recorded for the other.
TEST_F(FunctionTest, RejectsARepeatedModuleAlsoWithoutTheFabricManager) {
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  builder.gpu("0000:3a:00.0", bridge);
  builder.gpu("0000:3b:00.0", bridge);
  builder.gpu("0000:3d:00.0", bridge);
  builder.topology.functions[builder.function(FunctionRole::nvswitch, "0000:3c:00.0", bridge)]
      .driver = "nvidia-nvswitch";
  kernel.addFunction("0000:3b:00.0", "nvidia").serial = "G2";
  input.topology = builder.topology;
  input.mapping.nvlink = NvlinkMode::partition;
  input.mapping.functions.push_back(gpu("gpu1", "0000:3b:00.0"));
  input.placements.push_back({{0, 3, 0, 0}, std::nullopt, {}});
  input.fabricClient = true;
  input.leases = {attached()};
  std::get<LeasedFunction>(input.leases[0].part).nvlinkModule = 4;
  input.mapping.functions[1].nvlinkModule = 4;
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::badInput);
  EXPECT_THAT(problem.message, HasSubstr("two GPUs of the mapping have the module ID 4"));
  EXPECT_EQ(nvlinkModuleOf(decide().leases.at(1)), std::nullopt);
}

TEST_F(FunctionTest, StartActivatesThePartitionLastAndStopDeactivatesItFirst) {
  Lease lease = attached();
  std::get<LeasedFunction>(lease.part).nvlinkModule = 4;
  const auto prepare = [&](const std::vector<Lease>& known) {
    return planPrepare(input.domain, "train0", {lease}, known, kernel.inventory(), "boot");
  };
  const PrepareDecision start = prepare({lease});
  ASSERT_THAT(start.plan.steps, testing::Not(IsEmpty()));
  const Step& last = start.plan.steps.back();
  const SetPartition active{{lease.device}, {4}, true};
  const SetPartition inactive{{lease.device}, {4}, false};
  EXPECT_EQ(last.action, Action(active));
  EXPECT_EQ(last.undo, std::vector<Action>{inactive});
  Lease other = lease;
  other.domain = otherDomain;
  other.pf = other.device = *parsePciAddress("0000:4a:00.0");
  const auto refused = prepare({lease, other});
  ASSERT_THAT(refused.objections, SizeIs(1));
  EXPECT_THAT(refused.objections[0].message, HasSubstr("the module ID 4 is that of"));
  lease.state = LeaseState::running;
  const Plan stop = planRelease(input.domain, "train0", {lease}, kernel.inventory(), "boot");
  EXPECT_EQ(stop.steps.front().action, Action(inactive));
  EXPECT_EQ(planRestore({lease}, {lease}, kernel.inventory(), {}).steps.front().action,
            Action(inactive));
}

TEST_F(FunctionTest, StartOfAGpuWithoutAModuleActivatesNothing) {
  const Lease lease = attached();
  const auto decision =
      planPrepare(input.domain, "train0", {lease}, {lease}, kernel.inventory(), "boot");
  EXPECT_TRUE(std::ranges::none_of(decision.plan.steps, [](const Step& step) {
    return std::holds_alternative<SetPartition>(step.action);
  }));
}

TEST_F(FunctionTest, DescribesDriverAndReset) {
  const auto line = [&] {
    input.inventory = kernel.inventory();
    return describeDevices(input).at(0);
  };
  function().resetMethods = std::vector<std::string>{"flr", "bus"};
  EXPECT_EQ(line(), "gpu0: driver vfio-pci, reset flr, bus");
  function().resetMethods.emplace();
  EXPECT_THAT(line(), HasSubstr("cannot be reset"));
  function().busPeers = {{*parsePciAddress("0000:3a:00.1"), 0x040300, ""}};
  EXPECT_THAT(line(), HasSubstr("reset with its bus"));
  function().vfioDriver = "nvgrace_gpu_vfio_pci";
  EXPECT_THAT(line(), HasSubstr("driver nvgrace_gpu_vfio_pci,"));
  input.mapping.functions[0].driver = "vfio-pci";
  EXPECT_THAT(line(), HasSubstr("driver vfio-pci (nvgrace_gpu_vfio_pci is a better match)"));
}

TEST_F(FunctionTest, RefusesRemovalOfCompanionFromMapping) {
  function().groupPeers = {{*parsePciAddress("0000:3a:00.1"), 0x040300, "vfio-pci"}};
  kernel.addFunction("0000:3a:00.1", "vfio-pci");
  input.mapping.functions.push_back(gpu("audio0", "0000:3a:00.1"));
  input.leases = decide().leases;
  input.mapping.functions.pop_back();
  EXPECT_THAT(objection().message, HasSubstr("shares IOMMU group"));
}

TEST_F(FunctionTest, RefusesFunctionOfAnotherDomain) {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = otherDomain;
  lease.domainName = "other";
  lease.pf = lease.device = function().address;
  input.leases = {lease};
  EXPECT_THAT(objection().message, HasSubstr("is leased to domain other"));
  input.leases.clear();
  DomainSummary domain;
  domain.uuid = otherDomain;
  domain.name = "hand-made";
  domain.claims = {{function().address, "", {}}, {function().address, "", {}}};
  input.domains = {domain};
  EXPECT_THAT(objection().message, HasSubstr("0000:3a:00.0 is claimed by domain hand-made"));
  EXPECT_EQ(objection().code, ExitCode::refused);
  input.domains[0].uuid = input.domain;
  EXPECT_THAT(objection().message, HasSubstr("a hostdev of this domain"));
}

TEST_F(FunctionTest, RefusesVfOfPfLeasedAsWholeFunction) {
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = otherDomain;
  lease.domainName = "other";
  lease.pf = lease.device = *parsePciAddress("0000:01:00.0");
  input.leases = {lease};
  input.mapping.vfs[0].index = 3;
  EXPECT_THAT(objection().message,
              HasSubstr("PCI function 0000:01:00.0 is leased to domain other"));
}

TEST_F(FunctionTest, RemovedGpuEntryIsRestoredAndVfEntryKept) {
  input.leases = decide().leases;
  input.xmlCurrent = true;
  function().driver = function().driverOverride = "vfio-pci";
  input.mapping.functions.clear();
  const auto steps = decide().plan.steps;
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_EQ(std::get<EditDomain>(steps[0].action).leases.size(), 1U);
  EXPECT_EQ(std::get<BindDriver>(steps[1].action),
            (BindDriver{*parsePciAddress("0000:3a:00.0"), "nvidia", ""}));
  EXPECT_EQ(std::get<DropLease>(steps[2].action).entry, "gpu0");
}

TEST_F(FunctionTest, EntryChangedFromVfToFunctionReplacesLease) {
  input.mapping.functions.clear();
  input.leases = decide().leases;
  input.mapping.vfs.clear();
  input.mapping.functions = {gpu("rail0", "0000:3a:00.0")};
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(decision.leases.at(0).guest, input.leases[0].guest);
  const auto& drop = std::get<DropLease>(decision.plan.steps.back().action);
  EXPECT_EQ(drop.entry, "rail0");
}

TEST_F(FunctionTest, PrepareRebindsAfterReboot) {
  const Lease lease = attached();
  function().driver = "nvidia";
  function().driverOverride.clear();
  const auto decision =
      planPrepare(input.domain, "train0", {lease}, {lease}, kernel.inventory(), "boot-2");
  ASSERT_THAT(decision.objections, IsEmpty());
  ASSERT_THAT(decision.plan.steps, SizeIs(2));
  const auto& starting = std::get<RecordLease>(decision.plan.steps[0].action).lease;
  EXPECT_EQ(starting.state, LeaseState::starting);
  EXPECT_EQ(starting.bootId, "boot-2");
  EXPECT_FALSE(starting.original.created);
  EXPECT_EQ(std::get<BindDriver>(decision.plan.steps[1].action).driver, "vfio-pci");
}

TEST_F(FunctionTest, PrepareRefusesMissingMovedSharedOrForeignFunction) {
  const Lease lease = attached();
  const auto reason = [&](const std::vector<Lease>& known) {
    const auto decision =
        planPrepare(input.domain, "train0", {lease}, known, kernel.inventory(), "boot");
    EXPECT_THAT(decision.plan.steps, IsEmpty());
    return decision.objections.empty() ? "nothing" : decision.objections[0].message;
  };
  function().serial = "G2";
  EXPECT_THAT(reason({lease}), HasSubstr("has serial number G2, the leased card has G1"));
  function().serial = "G1";
  function().path = "elsewhere";
  EXPECT_THAT(reason({lease}), HasSubstr("has PCI path elsewhere"));
  function().path = lease.pfPath;
  function().groupPeers = {{*parsePciAddress("0000:3a:00.1"), 0x040300, ""}};
  EXPECT_THAT(reason({lease}), HasSubstr("shares IOMMU group"));
  function().groupPeers.clear();
  function().uses = {"sda is mounted at /"};
  EXPECT_THAT(reason({lease}), HasSubstr("sda is mounted at /"));
  function().uses.clear();
  Lease foreign = lease;
  foreign.domain = otherDomain;
  foreign.domainName = "rightful";
  EXPECT_THAT(reason({foreign, lease}),
              HasSubstr("PCI function 0000:3a:00.0 is leased to domain rightful"));
  kernel.functions.clear();
  EXPECT_THAT(reason({lease}), HasSubstr("PCI function 0000:3a:00.0 (gpu0) does not exist"));
}

TEST_F(FunctionTest, ReleaseResetsFunctionAndKeepsVfioDriver) {
  Lease lease = attached();
  EXPECT_THAT(planRelease(input.domain, "train0", {lease}, kernel.inventory(), "boot").steps,
              IsEmpty());
  lease.state = LeaseState::running;
  const auto steps = planRelease(input.domain, "train0", {lease}, kernel.inventory(), "boot").steps;
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(std::get<ResetFunction>(steps[0].action).function, lease.device);
  EXPECT_EQ(std::get<RecordLease>(steps[1].action).lease.state, LeaseState::reserved);
}

TEST_F(FunctionTest, DetachRestoresDriverAndOverride) {
  function().driverOverride = "nvidia";
  Lease lease = attached();
  lease.state = LeaseState::running;
  const auto steps = planRestore({lease}, {lease}, kernel.inventory(), {}).steps;
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_TRUE(std::holds_alternative<ResetFunction>(steps[0].action));
  EXPECT_EQ(std::get<BindDriver>(steps[1].action), (BindDriver{lease.device, "nvidia", "nvidia"}));
  kernel.functions.clear();
  EXPECT_THAT(planRestore({lease}, {lease}, kernel.inventory(), {}).steps, SizeIs(1))
      << "the lease ends";
}

TEST_F(FunctionTest, FunctionOriginallyOnVfioStaysBound) {
  function().driver = "vfio-pci";
  const auto decision = decide();
  const Lease& lease = decision.leases.at(1);
  EXPECT_EQ(lease.original.driver, "vfio-pci");
  for (const auto& step : decision.plan.steps) {
    const auto* bind = std::get_if<BindDriver>(&step.action);
    EXPECT_TRUE(bind == nullptr || bind->function != lease.device);
  }
  EXPECT_THAT(planRestore({lease}, {lease}, kernel.inventory(), {}).steps, SizeIs(1));
}

}  // namespace
}  // namespace vfpass::plan
