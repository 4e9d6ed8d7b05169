#include "vfpass/capture/captured_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "content_of.hpp"
#include "fake/temporary_folder.hpp"

namespace vfpass::capture {
namespace {

namespace fs = std::filesystem;
using host::RecordedEntry;
using Kind = RecordedEntry::Kind;

class TarTest : public testing::Test {
 protected:
  /// Writes the tree and extracts it with the system's tar.
  void extract(const CapturedTree& tree) const {
    writeTar(tree, file);
    fs::create_directory(folder);
    const std::string command = "tar -xf " + file.string() + " -C " + folder.string();
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  fake::TemporaryFolder temporary;
  fs::path file = temporary.path() / "tree.tar";
  fs::path folder = temporary.path() / "extracted";
};

TEST_F(TarTest, ExtractsFilesLinksAndDirectories) {
  extract({{"a/file", {Kind::file, std::string("one\0two\n", 8)}},
           {"a/empty", {Kind::file, ""}},
           {"a/link", {Kind::link, "../b"}},
           {"b/directory", {Kind::directory, ""}}});
  EXPECT_EQ(contentOf(folder / "a/file"), std::string("one\0two\n", 8));
  EXPECT_EQ(fs::file_size(folder / "a/empty"), 0U);
  EXPECT_EQ(fs::read_symlink(folder / "a/link"), "../b");
  EXPECT_TRUE(fs::is_directory(folder / "b/directory"));
}

// The limits of the fields of a tar header are 100 and 155 bytes.
TEST_F(TarTest, KeepsPathsAndTargetsOfAnyLength) {
  CapturedTree tree;
  for (const std::size_t length : {85U, 88U, 92U, 99U, 100U, 101U, 155U, 240U}) {
    const std::string name = std::string(length - 5, 'n') + "/file";
    tree[name] = {Kind::file, std::to_string(length)};
    tree["link" + std::to_string(length)] = {Kind::link, name};
    tree["long/" + std::string(200, 'p') + "/" + name] = {Kind::file, name};
  }
  extract(tree);
  for (const auto& [path, entry] : tree) {
    if (entry.kind == Kind::link) {
      EXPECT_EQ(fs::read_symlink(folder / path), entry.content);
    } else {
      EXPECT_EQ(contentOf(folder / path), entry.content) << path;
    }
  }
}

TEST_F(TarTest, SameTreeGivesTheSameBytes) {
  const CapturedTree tree = {{std::string(120, 'n'), {Kind::file, "text"}}};
  writeTar(tree, file);
  writeTar(tree, temporary.path() / "again.tar");
  EXPECT_EQ(contentOf(file), contentOf(temporary.path() / "again.tar"));
}

}  // namespace
}  // namespace vfpass::capture
