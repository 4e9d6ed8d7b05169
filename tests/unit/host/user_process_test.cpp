#include "user_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "holders/link_survey.hpp"
#include "holders/mount_table.hpp"
#include "link_messages.hpp"
#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
#include "netlink/network_namespaces.hpp"

namespace vfpass::host {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::uint64_t inodeOf(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

class UserProcessTest : public testing::Test {
 protected:
  // The process in the list of all processes.
  std::vector<Process> listed(const UserProcess& user) {
    auto processes = readProcesses(root_).processes;
    std::erase_if(processes, [&](const Process& each) { return each.id != user.id(); });
    return processes;
  }

  Root root_;
};

#define REQUIRE_ATTACK(user)                                                 \
  if (!(user)) {                                                             \
    GTEST_SKIP() << "users cannot create namespaces with these mounts here"; \
  }

TEST_F(UserProcessTest, OwnsItsNamespaces) {
  const UserProcess user([] { return true; });
  REQUIRE_ATTACK(user);
  for (const char* kind : {"net", "mnt"}) {
    const FileDescriptor ours(::open((std::string("/proc/self/ns/") + kind).c_str(), O_RDONLY));
    const FileDescriptor theirs(
        ::open(("/proc/" + user.id() + "/ns/" + kind).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(ours && theirs);
    EXPECT_TRUE(isOwnedByHost(ours.get())) << kind;
    EXPECT_FALSE(isOwnedByHost(theirs.get())) << kind;
  }
}

// Mounts the kernel's longest path very often, and a tmpfs with a disk as its source.
bool mountMuch() {
  std::string path = "/tmp";
  for (int i = 0; i < 15; ++i) {
    path += "/" + std::string(250, 'x');
    if (::mkdir(path.c_str(), 0700) != 0) {
      return false;
    }
  }
  for (int i = 0; i < 3000; ++i) {
    if (::mount("none", path.c_str(), "tmpfs", 0, nullptr) != 0) {
      return false;
    }
  }
  return ::mkdir("/tmp/disk", 0700) == 0 &&
         ::mount("/dev/vdz", "/tmp/disk", "tmpfs", 0, nullptr) == 0;
}

TEST_F(UserProcessTest, CannotPretendToUseDiskByItsMounts) {
  const UserProcess user(mountMuch);
  REQUIRE_ATTACK(user);
  const MountTable table(root_, listed(user), std::chrono::seconds(60));
  EXPECT_TRUE(table.isComplete());
  EXPECT_THAT(table.mountsOf({"", "/dev/vdz"}), IsEmpty());
}

TEST_F(UserProcessTest, CannotDelayOthersByItsMounts) {
  const UserProcess user(mountMuch);
  REQUIRE_ATTACK(user);
  EXPECT_FALSE(MountTable(root_, listed(user), std::chrono::milliseconds(0)).isComplete());
}

// A copy of a mount of the host, which keeps a disk in use after the host has unmounted it.
TEST_F(UserProcessTest, IsFoundByDeviceNumberOfItsMounts) {
  const UserProcess user([] { return true; });
  REQUIRE_ATTACK(user);
  struct stat status {};
  ASSERT_EQ(::stat("/", &status), 0);
  if (major(status.st_dev) == 0) {
    GTEST_SKIP() << "the root file system has no block device";
  }
  const std::string number =
      std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  EXPECT_THAT(MountTable(root_, listed(user)).mountsOf({number, ""}), testing::Not(IsEmpty()));
}

// Keeps its first network namespace by a mount alone.
bool hideNamespace() {
  const FileDescriptor file(::open("/tmp/hidden", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  return file && ::mount("/proc/self/ns/net", "/tmp/hidden", nullptr, MS_BIND, nullptr) == 0 &&
         ::unshare(CLONE_NEWNET) == 0;
}

TEST_F(UserProcessTest, CannotHideNetworkNamespace) {
  const UserProcess user(hideNamespace);
  REQUIRE_ATTACK(user);
  const auto processes = listed(user);
  const auto ours = inodeOf("/proc/self/ns/net");
  const auto found = findNetworkNamespaces(processes, MountTable(root_, processes), ours);
  ASSERT_THAT(found, SizeIs(3));
  const auto hidden =
      std::ranges::find_if(found, [](const NetworkNamespace& each) { return each.files.empty(); });
  ASSERT_NE(hidden, found.end());
  ASSERT_THAT(hidden->mounts, SizeIs(1));
  EXPECT_FALSE(hidden->mounts.front().trusted);
  const FileDescriptor opened(openNamespace(hidden->mounts.front(), hidden->inode));
  EXPECT_TRUE(opened);
  const LinkSurvey survey = surveyLinks(root_, found, std::chrono::milliseconds(10000));
  EXPECT_EQ(survey.blindSpot, "");
  EXPECT_EQ(survey.unread, "");
  EXPECT_THAT(survey.namespaces, SizeIs(3));
}

// Gives the loopback device nearly 64 KiB of alternative names.
bool inflateLink() {
  std::string names;
  for (int i = 0; i < 490; ++i) {
    std::string name = std::to_string(i);
    name.resize(126, 'x');
    names += messages::text(IFLA_ALT_IFNAME, name);
  }
  ifinfomsg information{};
  information.ifi_index = 1;
  const std::string request = messages::message(
      RTM_NEWLINKPROP,
      messages::bytes(information) + messages::attribute(IFLA_PROP_LIST | NLA_F_NESTED, names),
      NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL | NLM_F_APPEND);
  const FileDescriptor socket(openNetlink(NETLINK_ROUTE));
  std::string reply(std::size_t{128} << 10U, '\0');
  const ssize_t length = sendNetlink(socket.get(), request)
                             ? receiveNetlink(socket.get(), {reply.data(), reply.size()})
                             : -1;
  return length > 0 && dumpError({reply.data(), static_cast<std::size_t>(length)}) == 0;
}

// As long as one dump of 1,100 such links.
TEST_F(UserProcessTest, CannotBlockOthersByLengthOfDumps) {
  const UserProcess user(inflateLink);
  REQUIRE_ATTACK(user);
  const std::string file = "/proc/" + user.id() + "/ns/net";
  const std::vector<NetlinkQuery> queries(1100, {0, NETLINK_ROUTE, linkDumpQuery(), true});
  std::size_t total = 0;
  LinkDump dump;
  const auto errors =
      streamNetlinkBatch({{inodeOf(file), {file}}}, queries, -1, std::chrono::milliseconds(60000),
                         [&](std::size_t /*query*/, std::string_view datagram) {
                           total += datagram.size();
                           addLinks(datagram, LinkScope::ofDevices, dump);
                         });
  EXPECT_THAT(errors, testing::Each(0));
  EXPECT_GT(total, std::size_t{64} << 20U);
  EXPECT_EQ(dump.error, 0);
  EXPECT_THAT(dump.links, IsEmpty());
}

// The path of the mount leads to something that cannot be entered.
TEST_F(UserProcessTest, CannotBlockOthersByUnreadableNamespace) {
  const UserProcess user(hideNamespace);
  REQUIRE_ATTACK(user);
  const auto processes = listed(user);
  auto found =
      findNetworkNamespaces(processes, MountTable(root_, processes), inodeOf("/proc/self/ns/net"));
  ASSERT_THAT(found, SizeIs(3));
  for (NetworkNamespace& each : found) {
    for (NamespaceMount& mount : each.mounts) {
      mount.path += "/below";
    }
  }
  const LinkSurvey survey = surveyLinks(root_, found, std::chrono::milliseconds(10000));
  EXPECT_EQ(survey.blindSpot, "");
  EXPECT_THAT(survey.unread, testing::HasSubstr("cannot read the links"));
}

}  // namespace
}  // namespace vfpass::host
