#include "vfpass/host/root.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

using hosts::SysfsTree;
using testing::ElementsAre;

std::vector<std::string> pathsOf(const Recording& recording) {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : recording.entries()) {
    paths.push_back(path);
  }
  return paths;
}

struct RecordedTree : SysfsTree {
  RecordedTree() : recording(path()), root(path()) { root.recordInto(recording); }
  Recording recording;
  Root root;
};

TEST(Recording, ContainsOnlyFilesThatWereRead) {
  RecordedTree tree;
  const std::string folder = tree.function("0000:01:00.0");
  EXPECT_EQ(tree.root.readText("sys/bus/pci/devices/0000:01:00.0/class"), "0x020000");
  EXPECT_THAT(pathsOf(tree.recording), ElementsAre(folder + "/class"));
  EXPECT_EQ(tree.recording.entries().begin()->second.content, "0x020000\n");
}

TEST(Recording, ListingRecordsLinksAndDirectories) {
  RecordedTree tree;
  const std::string folder = tree.function("0000:01:00.0");
  tree.file("sys/bus/pci/devices/file", "unread");
  EXPECT_EQ(tree.root.list("sys/bus/pci/devices").size(), 2U);
  EXPECT_THAT(pathsOf(tree.recording),
              ElementsAre("sys/bus/pci/devices", "sys/bus/pci/devices/0000:01:00.0"));
  EXPECT_EQ(tree.recording.entries().at("sys/bus/pci/devices/0000:01:00.0").content,
            "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
}

TEST(Recording, CombinesPartsOfFile) {
  RecordedTree tree;
  tree.file("sys/vpd", "0123456789");
  const Folder folder(tree.root, "sys");
  EXPECT_EQ(folder.readBytes("vpd", 4, 2), "45");
  EXPECT_EQ(folder.readBytes("vpd", 0, 2), "01");
  EXPECT_EQ(tree.recording.entries().at("sys/vpd").content, std::string("01\0\0"
                                                                        "45",
                                                                        6));
}

TEST(Recording, RecordsLinksVerbatim) {
  RecordedTree tree;
  tree.function("0000:01:00.0");
  tree.bind("0000:01:00.0", "mlx5_core");
  const Folder folder(tree.root, SysfsTree::folderOf("0000:01:00.0"));
  EXPECT_EQ(folder.linkName("driver"), "mlx5_core");
  const auto& entry = tree.recording.entries().at(SysfsTree::folderOf("0000:01:00.0") + "/driver");
  EXPECT_EQ(entry.kind, RecordedEntry::Kind::link);
  EXPECT_TRUE(entry.content.starts_with("../"));
}

}  // namespace
}  // namespace vfpass::host
