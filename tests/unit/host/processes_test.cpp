#include "holders/processes.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "helper/guarded_child.hpp"
#include "process_tree.hpp"
#include "vfpass/host/container_and_guest_names.hpp"

namespace vfpass::host {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string zeroSeparated(std::initializer_list<std::string> arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    line += argument + '\0';
  }
  return line;
}

TEST(Processes, KeepsDeviceFilesAndNetworkNamespacesOnly) {
  const ProcessTree tree;
  tree.process("812", "qemu-system-x86");
  tree.open("812", "0", "/dev/null");
  tree.open("812", "3", "socket:[99]");
  tree.open("812", "4", "/var/log/messages");
  tree.open("812", "5", "/dev/vfio/12 (deleted)");
  tree.open("812", "6", "net:[4026532000]");
  tree.open("812", "7", "/dev/pts/0");
  const auto list = readProcesses(Root(tree.path()));
  EXPECT_EQ(list.blindSpot, "");
  ASSERT_THAT(list.processes, SizeIs(2));
  EXPECT_EQ(describe(list.processes[1]), "qemu-system-x86 (pid 812)");
  EXPECT_THAT(list.processes[1].files, ElementsAre(Field(&OpenFile::target, "/dev/vfio/12"),
                                                   Field(&OpenFile::target, "net:[4026532000]")));
  EXPECT_EQ(list.processes[1].networkNamespace, ourNetwork);
}

TEST(Processes, MakesNamesPrintable) {
  const ProcessTree tree;
  tree.process("7", "a\x1b[2Jb\n(pid 1)");
  const auto list = readProcesses(Root(tree.path()));
  EXPECT_EQ(list.processes.back().name, "a\\x1b[2Jb\\x0a(pid 1)");
}

TEST(Processes, ReportsHiddenProcesses) {
  const ProcessTree tree;
  tree.remove("proc/1");
  EXPECT_THAT(readProcesses(Root(tree.path())).blindSpot, HasSubstr("processes of other users"));
  tree.process("1", "init");
  tree.remove("proc/self/ns/pid");
  tree.raw("proc/self/ns/pid", "pid:[4026532999]");
  EXPECT_THAT(readProcesses(Root(tree.path())).blindSpot, HasSubstr("this PID namespace"));
}

TEST(Processes, ReadsNumbersOfDeviceFiles) {
  const FileDescriptor loops(::open("/dev/loop-control", O_RDONLY | O_CLOEXEC));
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!loops) {
    GTEST_SKIP() << "/dev/loop-control cannot be opened here";
  }
  const auto list = readProcesses(Root());
  const auto ours = std::ranges::find(list.processes, std::to_string(::getpid()), &Process::id);
  ASSERT_NE(ours, list.processes.end());
  EXPECT_THAT(ours->files, testing::Contains(AllOf(Field(&OpenFile::target, "/dev/loop-control"),
                                                   Field(&OpenFile::device, makedev(10, 237)),
                                                   Field(&OpenFile::isBlock, false))));
  EXPECT_THAT(ours->files, testing::Not(testing::Contains(Field(&OpenFile::target, "/dev/full"))));
}

TEST(NamespaceInode, ReadsOnlyLinksOfRequestedKind) {
  EXPECT_EQ(namespaceInode("net:[4026531840]", "net"), 4026531840U);
  for (const char* text : {"", "net:", "net:[", "net:[]", "net:[-1]", "net:[1", "mnt:[1]",
                           "net:[99999999999999999999]", "network:[1]", "net:[1 ]"}) {
    EXPECT_EQ(namespaceInode(text, "net"), std::nullopt) << text;
  }
}

TEST(QemuGuest, ReadsNameAndUuid) {
  const auto guest = parseQemuGuest(
      zeroSeparated({"/usr/bin/qemu-system-x86_64", "-name", "guest=train0,debug-threads=on", "-S",
                     "-uuid", "6f1c4a52-5a2d-4a8e-8d3c-0e6a7f1b2c3d", "-nodefaults"}));
  EXPECT_EQ(guest.name, "train0");
  EXPECT_EQ(guest.uuid, parseUuid("6f1c4a52-5a2d-4a8e-8d3c-0e6a7f1b2c3d"));
}

TEST(QemuGuest, ReadsAllFormsOfName) {
  EXPECT_EQ(parseQemuGuest(zeroSeparated({"q", "-name", "plain"})).name, "plain");
  EXPECT_EQ(parseQemuGuest(zeroSeparated({"q", "-name", "guest=a,,b,process=c"})).name, "a,b");
  EXPECT_EQ(parseQemuGuest(zeroSeparated({"q", "-name", "guest=a,"})).name, "a");
  // The value of an option is not parsed as an option.
  const auto guest = parseQemuGuest(zeroSeparated({"q", "-name", "-uuid", "-uuid", "bad"}));
  EXPECT_EQ(guest.name, "-uuid");
  EXPECT_EQ(guest.uuid, std::nullopt);
}

TEST(QemuGuest, ToleratesHostileCommandLines) {
  EXPECT_EQ(parseQemuGuest("").name, "");
  EXPECT_EQ(parseQemuGuest(std::string(5, '\0')).name, "");
  EXPECT_EQ(parseQemuGuest(zeroSeparated({"q", "-name"})).name, "");
  EXPECT_EQ(parseQemuGuest("-uuid").uuid, std::nullopt);
  // The program name is not parsed as an option either.
  EXPECT_EQ(parseQemuGuest(zeroSeparated({"-name", "guest=x"})).name, "");
  const std::string name =
      parseQemuGuest(zeroSeparated({"q", "-name", "guest=\x1b]0;x\x07\n" + std::string(9999, 'A')}))
          .name;
  EXPECT_LE(name.size(), 512U);
  EXPECT_EQ(name.find_first_of("\x1b\x07\n"), std::string::npos);
}

TEST(TaskName, RoundTripsEveryAddress) {
  for (const PciAddress& device :
       {PciAddress{0, 0x3b, 0, 1}, PciAddress{0x10000, 0xe1, 0x1f, 7},
        PciAddress{0x12345678, 0xff, 0x1f, 7}, PciAddress{0xffffffff, 0, 0, 0}}) {
    const std::string name = taskName(device);
    EXPECT_LE(name.size(), 15U) << name;
    EXPECT_EQ(deviceInTaskName(name), device) << name;
  }
  EXPECT_EQ(taskName({0x10000, 0xe1, 0, 0}), "vf10000:e1:00.0");
}

TEST(TaskName, RejectsOtherNames) {
  for (const char* name :
       {"", "vf", "vfpass", "vfpass-guarded", "vf3b:00.1", "vf0000:3B:00.1", "vf0000:3b:00.1x",
        "vf00003b01", "vf0000000000003b", "0000:3b:00.1", "vfio-irqfd-clea"}) {
    EXPECT_EQ(deviceInTaskName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace vfpass::host
