#include "vfpass/capture/captured_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "content_of.hpp"
#include "fake/temporary_folder.hpp"
#include "vfpass/error.hpp"

namespace vfpass::capture {
namespace {

namespace fs = std::filesystem;
using host::RecordedEntry;
using testing::HasSubstr;

const RecordedEntry file{RecordedEntry::Kind::file, "new"};
const RecordedEntry link{RecordedEntry::Kind::link, "../b/c"};
const RecordedEntry directory{RecordedEntry::Kind::directory, ""};

template <typename Call>
Error errorOf(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error("no failure");
}

class CapturedFolderTest : public testing::Test {
 protected:
  CapturedFolderTest() {
    fs::create_directory(outside);
    std::ofstream(outside / "victim") << "old";
  }

  // The error for the existing directory `target`.
  Error refusal() const {
    return errorOf([this] { const CapturedFolder opened(target); });
  }

  void expectNothingOutside() const {
    EXPECT_EQ(contentOf(outside / "victim"), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(outside), {}), 1);
  }

  fake::TemporaryFolder temporary;
  fs::path target = temporary.path() / "new" / "snapshot";
  fs::path outside = temporary.path() / "outside";
};

TEST_F(CapturedFolderTest, WritesTheTree) {
  writeFolder({{"a/link", link}, {"b", directory}, {"b/c/file", file}}, target);
  EXPECT_EQ(contentOf(target / "b/c/file"), "new");
  EXPECT_EQ(contentOf(target / "a/link/file"), "new");
  EXPECT_EQ(refusal().code(), ExitCode::badInput) << "the directory contains a snapshot";
}

TEST_F(CapturedFolderTest, FollowsNoSymlinkAtAnyLevel) {
  const CapturedFolder opened(target);
  fs::create_symlink(outside / "victim", target / "file");
  fs::create_symlink(outside / "fresh", target / "dangling");
  fs::create_directory_symlink(outside, target / "directory");
  fs::create_directories(target / "deep/er");
  fs::create_directory_symlink(outside, target / "deep/er/directory");
  fs::create_symlink(outside / "victim", target / "deep/er/file");
  for (const char* name : {"file", "dangling", "directory", "directory/victim", "directory/x/y",
                           "deep/er/directory/victim", "deep/er/directory/fresh", "deep/er/file",
                           "../escaped", "deep/../../escaped"}) {
    EXPECT_THROW(opened.write(name, file), Error) << name;
    EXPECT_THROW(opened.write(name, link), Error) << name;
  }
  for (const char* name : {"directory", "directory/new", "deep/er/directory", "dangling", ".."}) {
    EXPECT_THROW(opened.write(name, directory), Error) << name;
  }
  expectNothingOutside();
  EXPECT_FALSE(fs::exists(target.parent_path() / "escaped"));
}

TEST_F(CapturedFolderTest, ClearLeavesWhatOthersHavePutThere) {
  fs::create_directories(target);
  const CapturedFolder opened(target);
  opened.write("a/b/file", file);
  opened.write("a/c/link", link);
  opened.write("d", directory);
  std::ofstream(target / "theirs") << "theirs";
  std::ofstream(target / "a/c/theirs") << "theirs";
  opened.clear();
  EXPECT_EQ(contentOf(target / "theirs"), "theirs");
  EXPECT_EQ(contentOf(target / "a/c/theirs"), "theirs");
  EXPECT_FALSE(fs::exists(target / "a/b"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(target / "a/c/link")));
  EXPECT_FALSE(fs::exists(target / "d"));
  expectNothingOutside();
}

TEST_F(CapturedFolderTest, ClearLeavesNothingOfItsOwn) {
  const CapturedFolder opened(target);
  opened.write("a/b/file", file);
  opened.write("a/link", link);
  EXPECT_THROW(opened.write("a/link", file), Error);
  opened.clear();
  EXPECT_FALSE(fs::exists(target));
}

TEST_F(CapturedFolderTest, RefusesAbsolutePath) {
  const CapturedFolder opened(target);
  for (const RecordedEntry& entry : {file, link, directory}) {
    EXPECT_THROW(opened.write((outside / "fresh").string(), entry), Error);
    EXPECT_THROW(opened.write((outside / "deep/fresh").string(), entry), Error);
  }
  expectNothingOutside();
}

TEST_F(CapturedFolderTest, WritesOnlyToTheOpenedDirectory) {
  const CapturedFolder opened(target);
  fs::rename(target, temporary.path() / "moved");
  fs::create_directory_symlink(outside, target);
  opened.write("a/file", file);
  EXPECT_EQ(contentOf(temporary.path() / "moved/a/file"), "new");
  expectNothingOutside();
}

TEST_F(CapturedFolderTest, RefusesSymlinkAsTarget) {
  fs::create_directory(target.parent_path());
  fs::create_directory(temporary.path() / "empty");
  fs::create_directory_symlink(temporary.path() / "empty", target);
  EXPECT_EQ(refusal().code(), ExitCode::badInput);
  EXPECT_EQ(errorOf([this] { const CapturedFolder opened(target / ""); }).code(),
            ExitCode::badInput);
  EXPECT_TRUE(fs::is_empty(temporary.path() / "empty"));
}

TEST_F(CapturedFolderTest, RefusesDirectoryWritableOrOwnedByOthers) {
  fs::create_directories(target);
  for (const mode_t mode : {0777U, 01777U, 0770U}) {
    ::chmod(target.c_str(), mode);
    EXPECT_THAT(refusal().what(), HasSubstr("is writable by other users"));
  }
  ::chmod(target.c_str(), 0755);
  EXPECT_STREQ(refusal().what(), "no failure");
  if (::chown(target.c_str(), 65534, 65534) == 0) {
    EXPECT_THAT(refusal().what(), HasSubstr("belongs to another user (id 65534)"));
  } else {
    EXPECT_NE(::geteuid(), 0U) << "only root can change the owner";
  }
}

}  // namespace
}  // namespace vfpass::capture
