#include "vfpass/host/find_holders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holders/holder_kinds.hpp"
#include "process_tree.hpp"
#include "vfpass/host/container_and_guest_names.hpp"

namespace vfpass::host {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const std::string containerId = "0123456789ab" + std::string(52, 'c');
constexpr PciAddress firstGpu{0, 1, 0, 0};
constexpr PciAddress secondGpu{0, 2, 0, 0};

class GpuUsersTest : public testing::Test {
 protected:
  void opens(const std::string& process, const std::string& name, const std::string& file) {
    tree_.process(process, name);
    tree_.open(process, "3", file);
  }
  void numbered(const PciAddress& gpu, int number) {
    tree_.file("proc/driver/nvidia/gpus/" + toString(gpu) + "/information",
               "Model: \t\t H200\nDevice Minor: \t " + std::to_string(number) + "\n");
  }
  GpuUsers users() { return surveyGpus(Root(tree_.path()), {firstGpu, secondGpu}).users[firstGpu]; }

  ProcessTree tree_;
};

struct Known {
  const char* process;
  const char* what;
  const char* remedy;
};

TEST_F(GpuUsersTest, SuggestsCommandsToStopServicesAndDisplays) {
  const Known known[] = {
      {"nvidia-persiste", "the persistence daemon", "systemctl stop nvidia-persistenced"},
      {"nv-fabricmanage", "the fabric manager", "systemctl stop nvidia-fabricmanager"},
      {"nv-hostengine", "the monitor (DCGM)", "systemctl stop nvidia-dcgm"},
      {"Xorg", "the display server", "systemctl stop display-manager"},
      {"gnome-shell", "the display server", "let another GPU drive the display"},
      {"systemd-logind", "the login manager", "systemctl stop display-manager"}};
  for (const Known& each : known) {
    Process process;
    process.id = "7";
    process.name = each.process;
    const GpuUse use = gpuUseOf(Root(tree_.path()), process);
    EXPECT_THAT(use.who,
                AllOf(HasSubstr(each.what), HasSubstr(std::string(each.process) + " (pid 7)")));
    EXPECT_THAT(use.remedy, HasSubstr(each.remedy));
  }
}

TEST_F(GpuUsersTest, SuggestsWaitingForJobs) {
  numbered(firstGpu, 0);
  opens("90", "python3", "/dev/nvidia0");
  EXPECT_THAT(users().names, ElementsAre("python3 (pid 90)"));
  EXPECT_THAT(users().remedies, ElementsAre("wait until it ends, then try again"));
}

TEST_F(GpuUsersTest, NamesServiceAndVmToStop) {
  numbered(firstGpu, 0);
  opens("90", "ollama", "/dev/nvidia0");
  tree_.file("proc/90/cgroup", "0::/system.slice/ollama.service/runner\n");
  EXPECT_THAT(users().names, ElementsAre("ollama (pid 90) of ollama.service"));
  EXPECT_THAT(users().remedies,
              ElementsAre("systemctl stop ollama.service, once nothing on this host needs it"));
  tree_.file("proc/90/comm", "qemu-system-x86\n");
  tree_.file("proc/90/cgroup", "0::/machine.slice/machine-qemu-1-desk.scope\n");
  tree_.commandLine("90", {"qemu-system-x86_64", "-name", "guest=desk 1,debug-threads=on"});
  EXPECT_THAT(users().remedies, ElementsAre("virsh shutdown 'desk 1'"));
}

TEST_F(GpuUsersTest, StopsNoServiceOfUserSession) {
  numbered(firstGpu, 0);
  opens("90", "python3", "/dev/nvidia0");
  tree_.file("proc/90/cgroup", "0::/user.slice/user-0.slice/user@0.service/app.slice/x.service\n");
  EXPECT_THAT(users().remedies, ElementsAre("wait until it ends, then try again"));
}

TEST_F(GpuUsersTest, NamesContainerAndRuntime) {
  numbered(firstGpu, 0);
  opens("90", "python3", "/dev/nvidia0");
  tree_.file("proc/90/cgroup", "0::/system.slice/docker-" + containerId + ".scope\n");
  EXPECT_THAT(users().names, ElementsAre("python3 (pid 90) in docker container 0123456789ab"));
  EXPECT_THAT(users().remedies,
              ElementsAre("wait until its work ends, then stop the docker container 0123456789ab "
                          "with its runtime"));
  tree_.file("proc/90/comm", "dcgm-exporter\n");
  EXPECT_THAT(users().remedies,
              ElementsAre("stop the docker container 0123456789ab with its runtime"));
}

TEST_F(GpuUsersTest, CountsProcessOncePerGpu) {
  numbered(firstGpu, 0);
  numbered(secondGpu, 1);
  opens("90", "python3", "/dev/nvidia0");
  tree_.open("90", "4", "/dev/nvidia0");
  opens("91", "train", "/dev/nvidia1");
  opens("92", "nvidia-smi", "/dev/nvidiactl");
  const auto survey = surveyGpus(Root(tree_.path()), {firstGpu, secondGpu});
  EXPECT_EQ(survey.blindSpot, "");
  EXPECT_THAT(survey.users.at(firstGpu).names, SizeIs(1));
  EXPECT_THAT(survey.users.at(secondGpu).names, ElementsAre("train (pid 91)"));
}

TEST_F(GpuUsersTest, AssignsUnknownNumbersToUnnumberedGpus) {
  numbered(secondGpu, 1);
  opens("90", "python3", "/dev/nvidia0");
  opens("91", "python3", "/dev/nvidia1");
  EXPECT_THAT(users().names, ElementsAre("python3 (pid 90)"));
}

TEST_F(GpuUsersTest, MakesNamesPrintable) {
  numbered(firstGpu, 0);
  opens("90", "a\x1b[2J", "/dev/nvidia0");
  ASSERT_THAT(users().names, SizeIs(1));
  EXPECT_THAT(users().names[0], Not(HasSubstr("\x1b")));
}

TEST_F(GpuUsersTest, ReportsHiddenProcesses) {
  tree_.remove("proc/1");
  EXPECT_THAT(surveyGpus(Root(tree_.path()), {firstGpu}).blindSpot, HasSubstr("other users"));
}

TEST_F(GpuUsersTest, ReportsHoldersOfGpusAndNvSwitchesAsKindGpu) {
  tree_.function("0000:01:00.6", "0x030200");
  tree_.bind("0000:01:00.6", "nvidia");
  tree_.function("0000:01:00.7", "0x068000");
  tree_.bind("0000:01:00.7", "nvidia-nvswitch");
  tree_.file("proc/driver/nvidia/gpus/0000:01:00.6/information", "Device Minor: 3\n");
  opens("90", "python3", "/dev/nvidia3");
  opens("91", "nv-fabricmanage", "/dev/nvidia-nvswitch2");
  tree_.open("91", "4", "/dev/nvidia-nvswitchctl");
  const Root root(tree_.path());
  const auto holders = deviceFileHolders(
      root, {*readFunctionFacts(root, {0, 1, 0, 6}), *readFunctionFacts(root, {0, 1, 0, 7})},
      readProcesses(root).processes);
  ASSERT_THAT(holders, SizeIs(2));
  EXPECT_EQ(holders[0].kind, HolderKind::gpu);
  EXPECT_EQ(holders[0].description, "python3 (pid 90) has its device file /dev/nvidia3 open");
  EXPECT_EQ(holders[0].remedy, "wait until it ends, then try again");
  EXPECT_EQ(holders[1].kind, HolderKind::gpu);
  EXPECT_EQ(holders[1].description,
            "the fabric manager nv-fabricmanage (pid 91) has its device file "
            "/dev/nvidia-nvswitch2 open");
}

TEST(ContainerTest, IdentifiesRuntimesByControlGroup) {
  const std::pair<std::string, Container> groups[] = {
      {"0::/system.slice/docker-" + containerId + ".scope", {"docker", "0123456789ab"}},
      {"12:devices:/docker/" + containerId, {"docker", "0123456789ab"}},
      {"0::/machine.slice/libpod-" + containerId + ".scope/container", {"podman", "0123456789ab"}},
      {"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + containerId + ".scope",
       {"containerd", "0123456789ab"}},
      {"0::/kubepods.slice/kubepods-pod1.slice/crio-" + containerId + ".scope",
       {"CRI-O", "0123456789ab"}},
      {"4:memory:/kubepods/besteffort/pod7f/" + containerId, {"containerd", "0123456789ab"}},
      {"0::/lxc.payload.web/init.scope", {"LXC", "web"}},
      {"1:name=systemd:/\n0::/lxc/web", {"LXC", "web"}}};
  for (const auto& [text, container] : groups) {
    EXPECT_EQ(containerIn(text), container) << text;
  }
}

// Users choose the names of groups below their own, and the remedy stops the service.
TEST(ContainerTest, TakesServicesOnlyFromGroupsOfSystemd) {
  EXPECT_EQ(systemServiceIn("0::/system.slice/a.slice/x@1.service/worker\n"), "x@1.service");
  EXPECT_EQ(systemServiceIn("0::/user.slice/user@1000.service/x:/system.slice/ssh.service\n"), "");
}

TEST(ContainerTest, IgnoresOtherControlGroups) {
  for (const std::string text : {"", "0::/", "0::/user.slice/user-0.slice/session-1.scope",
                                 "rubbish", "0::/docker/short", "0::/system.slice/docker.service",
                                 "0::/machine.slice/machine-qemu\\x2d1\\x2dtrain0.scope"}) {
    EXPECT_EQ(containerIn(text), std::nullopt) << text;
  }
  EXPECT_EQ(containerIn("0::/machine.slice/libpod-conmon-" + containerId + ".scope"), std::nullopt);
}

}  // namespace
}  // namespace vfpass::host
