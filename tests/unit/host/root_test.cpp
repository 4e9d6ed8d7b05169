#include "vfpass/host/root.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

using hosts::SysfsTree;

TEST(Root, ReadsTextAndNumbers) {
  const SysfsTree tree;
  tree.file("sys/a", "  hello \n");
  tree.file("sys/decimal", "127\n");
  tree.file("sys/hex", "0x15b3\n");
  tree.file("sys/rubbish", "12 monkeys\n");
  tree.file("sys/negative", "-1\n");
  const Root root(tree.path());
  EXPECT_FALSE(root.isLive());
  EXPECT_EQ(root.readText("sys/a"), "hello");
  EXPECT_EQ(root.readNumber("sys/decimal"), 127U);
  EXPECT_EQ(root.readNumber("sys/hex"), 0x15b3U);
  EXPECT_EQ(root.readNumber("sys/rubbish"), std::nullopt);
  EXPECT_EQ(root.readNumber("sys/negative"), std::nullopt);
  EXPECT_EQ(root.readText("sys/missing"), std::nullopt);
}

TEST(Root, LimitsLengthOfText) {
  const SysfsTree tree;
  tree.file("big", std::string(100000, 'x'));
  const Root root(tree.path());
  EXPECT_EQ(root.readText("big")->size(), 4096U);
  EXPECT_EQ(root.readText("big", 10), "xxxxxxxxxx");
}

TEST(Root, KeepsLinksInsideTree) {
  const SysfsTree tree;
  std::filesystem::create_symlink("/etc/hostname", tree.path() / "absolute");
  std::filesystem::create_symlink("../../../../../../../../etc", tree.path() / "upwards");
  const Root root(tree.path());
  ASSERT_TRUE(std::filesystem::exists("/etc/hostname"));
  EXPECT_EQ(root.readText("absolute"), std::nullopt);
  EXPECT_EQ(root.readText("upwards/hostname"), std::nullopt);
  EXPECT_EQ(root.readText("../../../../../../etc/hostname"), std::nullopt);
  EXPECT_TRUE(root.list("upwards").empty());
  tree.file("etc/hostname", "inside");
  EXPECT_EQ(root.readText("absolute"), "inside");
}

TEST(Root, DoesNotBlockOnFifo) {
  const SysfsTree tree;
  ASSERT_EQ(::mkfifo((tree.path() / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(Root(tree.path()).readText("fifo"), std::nullopt);
}

TEST(Root, ReadsLinksWithoutFollowingThem) {
  const SysfsTree tree;
  tree.link("sys/x/driver", "sys/bus/pci/drivers/mlx5_core");
  tree.file("sys/plain", "x");
  const Root root(tree.path());
  EXPECT_EQ(root.linkName("sys/x/driver"), "mlx5_core");
  EXPECT_EQ(root.linkTarget("sys/x/driver"), "../bus/pci/drivers/mlx5_core");
  EXPECT_EQ(root.linkName("sys/plain"), std::nullopt);
  EXPECT_EQ(root.linkName("sys/missing"), std::nullopt);
  EXPECT_TRUE(root.exists("sys/x/driver"));
  EXPECT_FALSE(root.exists("sys/y"));
}

TEST(Root, ListsNamesSorted) {
  const SysfsTree tree;
  tree.file("d/b", "");
  tree.file("d/a", "");
  EXPECT_EQ(Root(tree.path()).list("d"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(Root(tree.path()).list("nowhere").empty());
  EXPECT_TRUE(Root(tree.path()).list("d/a").empty());
}

// Below the number of descriptors that this process has open.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Otherwise a device that exists would seem to be gone.
TEST(Root, ThrowsWithoutAFreeDescriptor) {
  const SysfsTree tree;
  tree.file("sys/x/class", "0x020000\n");
  const Root captured(tree.path());
  const Folder folder(captured, "sys/x");
  const Root live("/");
  // UBSan looks at the first object of a type through a pipe, for which there is no descriptor
  // later.
  EXPECT_THROW(Root("/nonexistent/tree"), Error);
  const NoDescriptors none;
  EXPECT_THROW(static_cast<void>(captured.readText("sys/x/class")), Error);
  EXPECT_THROW(static_cast<void>(captured.exists("sys/x")), Error);
  EXPECT_THROW(static_cast<void>(folder.readText("class")), Error);
  EXPECT_THROW(static_cast<void>(live.list("proc")), Error);
}

TEST(Root, RecognizesRunningSystemByAnyPath) {
  EXPECT_TRUE(Root("/").isLive());
  EXPECT_TRUE(Root("/usr/..").isLive());
}

TEST(Root, ThrowsForMissingDirectory) {
  try {
    Root("/nonexistent/tree");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/tree"), std::string::npos);
    EXPECT_EQ(error.code(), ExitCode::badInput);
  }
}

}  // namespace
}  // namespace vfpass::host
