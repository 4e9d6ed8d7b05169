#include "pf_baseline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hosts/sysfs_tree.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::string> namesOf(const std::vector<BaselineFactor>& factors) {
  std::vector<std::string> names;
  for (const auto& factor : factors) {
    names.push_back(factor.name);
  }
  return names;
}

TEST(SlowedByDomainTest, NamesUnpinnedVcpusAndSmallPages) {
  EXPECT_THAT(namesOf(slowedByDomain("<domain><vcpu>2</vcpu></domain>")),
              ElementsAre("vcpu-placement", "hugepages"));
  const std::string pages = "<memoryBacking><hugepages/></memoryBacking>";
  EXPECT_THAT(namesOf(slowedByDomain("<domain><vcpu cpuset='0-3'>2</vcpu>" + pages + "</domain>")),
              IsEmpty());
  EXPECT_THAT(namesOf(slowedByDomain("<domain><vcpu>2</vcpu>" + pages +
                                     "<cputune><vcpupin vcpu='0' cpuset='1'/></cputune></domain>")),
              ElementsAre("vcpu-placement"))
      << "one of two";
  EXPECT_THAT(
      namesOf(slowedByDomain("<domain><vcpu placement='auto'>2</vcpu>" + pages + "</domain>")),
      IsEmpty())
      << "numad";
}

TEST(RequireGpuModulesTest, RefusesWhatCudaWouldLoad) {
  const hosts::SysfsTree tree;
  const auto problem = [&tree]() -> std::string {
    try {
      requireGpuModules(host::Root(tree.path()), *parsePciAddress("0000:05:00.0"));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::refused);
      return error.what() + ("; " + error.remedy());
    }
  };
  EXPECT_THAT(problem(), HasSubstr("the module nvidia is not loaded"));
  tree.file("sys/module/nvidia/version", "580.95.05\n");
  EXPECT_THAT(problem(), HasSubstr("`modprobe nvidia_uvm`"));
  tree.file("sys/module/nvidia_uvm/refcnt", "0\n");
  EXPECT_EQ(problem(), "");
}

TEST(BandwidthSettingsTest, ReadsWhatIsObservable) {
  const hosts::SysfsTree tree;
  hosts::TopologyBuilder builder;
  builder.pf("0000:01:00.0", "mlx5_0", builder.hostBridge("pci0000:00", 0));
  auto& topology = builder.topology;
  std::size_t pf = 0;
  while (topology.functions[pf].address != *parsePciAddress("0000:01:00.0")) {
    ++pf;
  }
  topology.functions[pf].link = {};
  topology.functions[pf].iommuGroup.reset();
  EXPECT_THAT(bandwidthSettings(host::Root(tree.path()), topology, pf), IsEmpty());
  topology.functions[pf].iommuGroup = 7;
  tree.file("sys/kernel/iommu_groups/7/type", "DMA-FQ\n");
  tree.file("proc/sys/kernel/osrelease", "6.12.1\n");
  const std::string cpu = "sys/devices/system/cpu/";
  tree.file(cpu + "cpu0/cpufreq/scaling_governor", "performance\n");
  tree.file(cpu + "cpuidle/current_governor", "menu\n");
  for (const char* state : {"0", "1", "10", "2"}) {
    const std::string folder = cpu + "cpu0/cpuidle/state" + state;
    tree.file(folder + "/name", std::string("C") + state + "\n");
    tree.file(folder + "/disable", std::string(state) == "10" ? "1\n" : "0\n");
  }
  tree.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_THAT(bandwidthSettings(host::Root(tree.path()), topology, pf),
              ElementsAre(Pair("cpufreq-governor", "performance"), Pair("cpuidle-governor", "menu"),
                          Pair("deepest-c-state", "C2"), Pair("iommu-domain", "DMA-FQ"),
                          Pair("kernel", "6.12.1"), Pair("transparent-hugepages", "madvise")));
}

TEST(BandwidthSettingsTest, ProcessorIsOneOfThePfsNode) {
  const hosts::SysfsTree tree;
  hosts::TopologyBuilder builder;
  builder.pf("0000:01:00.0", "mlx5_0", builder.hostBridge("pci0000:00", 0));
  auto& topology = builder.topology;
  topology.processors.nodes = {{0, "0000ffff"}, {1, "ffff0000"}};
  const auto pf = static_cast<std::size_t>(
      std::ranges::find(topology.functions, *parsePciAddress("0000:01:00.0"), &Device::address) -
      topology.functions.begin());
  topology.functions[pf].numaNode = 1;
  for (const char* cpu : {"0", "16"}) {
    const std::string folder = std::string("sys/devices/system/cpu/cpu") + cpu;
    tree.file(folder + "/cpufreq/scaling_governor", std::string("governor") + cpu + "\n");
    tree.file(folder + "/cpuidle/state1/name", std::string("C") + cpu + "\n");
    tree.file(folder + "/cpuidle/state1/disable", "0\n");
  }
  const auto chosen = [&] {
    const auto settings = bandwidthSettings(host::Root(tree.path()), topology, pf);
    return settings.at("cpufreq-governor") + " " + settings.at("deepest-c-state");
  };
  EXPECT_EQ(chosen(), "governor16 C16");
  topology.functions[pf].numaNode = -1;
  EXPECT_EQ(chosen(), "governor0 C0") << "unknown node";
}

}  // namespace
}  // namespace vfpass::commands
