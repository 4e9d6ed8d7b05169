#include "netlink/network_namespaces.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "fake/temporary_folder.hpp"
#include "holders/link_survey.hpp"
#include "holders/mount_table.hpp"
#include "link_messages.hpp"
#include "process_tree.hpp"

namespace vfpass::host {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class NetworkNamespacesTest : public testing::Test {
 protected:
  std::vector<NetworkNamespace> find() {
    const Root root(tree_.path());
    const auto list = readProcesses(root);
    return findNetworkNamespaces(list.processes, MountTable(root, list.processes), ourNetwork);
  }
  std::vector<std::string> descriptions() {
    std::vector<std::string> texts;
    for (const NetworkNamespace& each : find()) {
      texts.push_back(each.description);
    }
    return texts;
  }
  void mountInfo(const std::string& process, const std::string& lines) {
    tree_.file("proc/" + process + "/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + lines);
  }

  ProcessTree tree_;
};

TEST_F(NetworkNamespacesTest, DescribesNamespaceByBestKnownSource) {
  mountInfo("self",
            "90 22 0:4 net:[101] /run/netns/blue rw - nsfs nsfs rw\n"
            "91 22 0:4 net:[104] /run/docker/netns/a\\040b rw - nsfs nsfs rw\n"
            "92 22 0:4 mnt:[105] /run/snapd/ns/x.mnt rw - nsfs nsfs rw\n");
  tree_.process("50", "nginx", 102);
  tree_.process("60", "sleep", 101);
  tree_.process("70", "containerd");
  tree_.open("70", "9", "net:[103]");
  EXPECT_THAT(descriptions(),
              ElementsAre("our own network namespace", "network namespace blue",
                          "the network namespace of nginx (pid 50)",
                          "a network namespace that containerd (pid 70) has open",
                          "the network namespace mounted at /run/docker/netns/a b"));
}

TEST_F(NetworkNamespacesTest, OrdersFilesBySafety) {
  mountInfo("self", "90 22 0:4 net:[101] /run/netns/blue rw - nsfs nsfs rw\n");
  tree_.process("60", "sleep", 101);
  tree_.open("60", "5", "net:[101]");
  EXPECT_THAT(find().back().files, ElementsAre("/proc/60/ns/net", "/proc/60/fd/5"));
  EXPECT_THAT(find().back().mounts, ElementsAre(Field(&NamespaceMount::path, "/run/netns/blue")));
}

TEST_F(NetworkNamespacesTest, FindsMountsInOtherMountNamespaces) {
  mountInfo("self", "");
  tree_.process("80", "crio", ourNetwork, 777);
  mountInfo("80", "90 22 0:4 net:[101] /var/netns/pod rw - nsfs nsfs rw\n");
  EXPECT_THAT(descriptions(), Contains("the network namespace mounted at /var/netns/pod"));
  EXPECT_THAT(find().back().files, IsEmpty());
  EXPECT_THAT(find().back().mounts, ElementsAre(Field(&NamespaceMount::root, "/proc/80/root")));
}

// A user can mount anything there in a mount namespace of their own.
TEST_F(NetworkNamespacesTest, TakesNamesOnlyFromOwnMountNamespace) {
  mountInfo("self", "90 22 0:4 net:[101] /run/netns/blue rw - nsfs nsfs rw\n");
  tree_.process("80", "x", ourNetwork, 777);
  mountInfo("80",
            "90 22 0:4 net:[102] /run/netns/blue rw - nsfs nsfs rw\n"
            "90 22 0:4 net:[101] /run/netns/red rw - nsfs nsfs rw\n");
  EXPECT_THAT(descriptions(), ElementsAre("our own network namespace", "network namespace blue",
                                          "the network namespace mounted at /run/netns/blue"));
}

TEST_F(NetworkNamespacesTest, LimitsMountsPerNamespace) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) {
    lines += "90 22 0:4 net:[101] /x" + std::to_string(i) + " rw - nsfs nsfs rw\n";
  }
  mountInfo("self", lines);
  EXPECT_THAT(find().back().mounts, SizeIs(4));
}

TEST_F(NetworkNamespacesTest, LimitsFilesPerNamespace) {
  for (int process = 100; process < 150; ++process) {
    tree_.process(std::to_string(process), "worker", 101);
    tree_.open(std::to_string(process), "3", "net:[101]");
  }
  const auto found = find();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found.back().files, SizeIs(8));
}

TEST_F(NetworkNamespacesTest, ToleratesHostileMountTables) {
  mountInfo("self",
            "90 22 0:4 net:[101] /run/netns/\\033[2J\\9 rw - nsfs nsfs rw\n"
            "90 22 0:4 net:[102] /run/netns/a/b rw - nsfs nsfs rw\n"
            "90 22 0:4 net:[103] \\\n net:[]\n\n");
  EXPECT_THAT(descriptions(),
              ElementsAre("our own network namespace", "network namespace \\x1b[2J\\9",
                          "the network namespace mounted at /run/netns/a/b",
                          "the network namespace mounted at \\"));
}

// A network namespace that exists as long as this object; the thread that created it has exited.
class RealNamespace {
 public:
  RealNamespace() {
    std::thread([this] {
      if (::unshare(CLONE_NEWNET) == 0) {
        file_ = FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
      }
    }).join();
  }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(file_); }
  [[nodiscard]] std::uint64_t inode() const {
    struct stat status {};
    ::fstat(file_.get(), &status);
    return status.st_ino;
  }
  void close() { file_.reset(); }

 private:
  FileDescriptor file_;
};

class LiveNamespaces : public testing::Test {
 protected:
  void SetUp() override {
    if (!namespace_) {
      GTEST_SKIP() << "no permission to create a network namespace";
    }
  }
  std::vector<NetworkNamespace> find() {
    const Root root;
    const auto list = readProcesses(root);
    const auto ours = namespaceInode(root.linkTarget("proc/self/ns/net").value_or(""), "net");
    return findNetworkNamespaces(list.processes, MountTable(root, list.processes), *ours);
  }
  // The namespace of this test; nullopt when it is not found.
  std::optional<NetworkNamespace> findCreated() {
    const auto found = find();
    const auto made = std::ranges::find(found, namespace_.inode(), &NetworkNamespace::inode);
    return made == found.end() ? std::nullopt : std::optional(*made);
  }

  static std::vector<Link> allLinks(const NetworkNamespace& each) {
    const auto answers = runNetlinkBatch({{each.inode, each.files, each.mounts}},
                                         {{0, NETLINK_ROUTE, linkDumpQuery(), true}}, -1, deadline);
    return messages::readLinks(answers.front().bytes).links;
  }

  static constexpr std::chrono::milliseconds deadline{5000};
  RealNamespace namespace_;
};

TEST_F(LiveNamespaces, FindsNamespaceKeptOnlyByDescriptor) {
  const auto made = findCreated();
  ASSERT_TRUE(made);
  EXPECT_THAT(made->description, HasSubstr("(pid " + std::to_string(::getpid()) + ") has open"));
}

TEST_F(LiveNamespaces, ReadsLinksOfEachNamespace) {
  const auto ours = find().front();
  const auto made = findCreated();
  ASSERT_TRUE(made);
  const LinkSurvey survey = surveyLinks(Root(), {ours, *made}, deadline);
  EXPECT_EQ(survey.blindSpot, "");
  ASSERT_THAT(survey.namespaces, SizeIs(2));
  EXPECT_THAT(survey.namespaces[0].links,
              Contains(Field(&OwnedLink::link, Field(&Link::name, "lo"))));
  // A new namespace has a loopback device that is down. It belongs to no device.
  EXPECT_THAT(survey.namespaces[1].links, IsEmpty());
  EXPECT_THAT(allLinks(*made),
              ElementsAre(testing::AllOf(Field(&Link::name, "lo"), Field(&Link::up, false))));
  EXPECT_FALSE(survey.namespaces[1].ours);
}

TEST_F(LiveNamespaces, TriesNextFileWhenOneIsNotNamespace) {
  const auto ours = find().front();
  auto made = findCreated();
  ASSERT_TRUE(made);
  const fake::TemporaryFolder folder;
  const std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // Opening a pipe would block; the file of another namespace would give its links.
  made->files.insert(made->files.begin(), {pipe, "/dev/null", "/nowhere", "/proc/self/ns/net"});
  const LinkSurvey survey = surveyLinks(Root(), {ours, *made}, deadline);
  EXPECT_EQ(survey.blindSpot, "");
  EXPECT_THAT(survey.namespaces, SizeIs(2));
  EXPECT_THAT(allLinks(*made), SizeIs(1));
}

TEST_F(LiveNamespaces, SkipsNamespaceThatIsGone) {
  const auto ours = find().front();
  const auto made = findCreated();
  ASSERT_TRUE(made);
  namespace_.close();
  const LinkSurvey survey = surveyLinks(Root(), {ours, *made}, deadline);
  EXPECT_EQ(survey.blindSpot, "");
  EXPECT_THAT(survey.namespaces, SizeIs(1));
}

}  // namespace
}  // namespace vfpass::host
