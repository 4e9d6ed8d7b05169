#include "vfpass/install/hook_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include "vfpass/error.hpp"

namespace vfpass::install {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class HookFiles : public testing::Test {
 protected:
  HookFiles() {
    std::string name = (fs::temp_directory_path() / "vfpass-hook-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    places_ = {folder_ / "hooks", folder_ / "program"};
  }
  ~HookFiles() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void writeProgram(const std::string& text, fs::perms mode = fs::perms(0755)) const {
    write(places_.binary, text, mode);
  }
  static void write(const fs::path& file, const std::string& text, fs::perms mode) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    fs::permissions(file, mode);
  }
  static std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  template <typename Call>
  static std::string errorOf(Call call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  fs::path folder_;
  HookPlaces places_;
};

TEST_F(HookFiles, LinksAndUnlinksOnlyOnce) {
  EXPECT_THAT(linkHook(places_), SizeIs(3));  // two directories and the link
  EXPECT_EQ(fs::read_symlink(places_.link()), places_.binary);
  EXPECT_THAT(linkHook(places_), IsEmpty());
  EXPECT_THAT(unlinkHook(places_), SizeIs(1));
  EXPECT_THAT(unlinkHook(places_), IsEmpty());
  EXPECT_TRUE(fs::is_directory(places_.folder()));
}

TEST_F(HookFiles, PlannedLinksChangeNothing) {
  EXPECT_THAT(plannedLinks(places_), SizeIs(3));
  EXPECT_FALSE(fs::exists(places_.hooksDirectory));
  linkHook(places_);
  EXPECT_THAT(plannedLinks(places_), IsEmpty());
  unlinkHook(places_);
  EXPECT_THAT(plannedLinks(places_), SizeIs(1));
  write(places_.link(), "theirs", fs::perms(0644));
  EXPECT_THAT(errorOf([&] { plannedLinks(places_); }), HasSubstr("not a vfpass link"));
  const HookPlaces missing{folder_ / "none/hooks", places_.binary};
  EXPECT_THAT(errorOf([&] { plannedLinks(missing); }), HasSubstr("cannot create directory"));
}

// What the dry run promises, the installation does: both refuse with the same text.
TEST_F(HookFiles, NameThatIsNoDirectoryIsRefusedAlsoInADryRun) {
  const auto refusals = [&] {
    const std::string planned = errorOf([&] { plannedLinks(places_); });
    EXPECT_EQ(errorOf([&] { linkHook(places_); }), planned);
    return planned;
  };
  fs::create_symlink(folder_ / "nothing", places_.hooksDirectory);
  EXPECT_THAT(refusals(), HasSubstr("hooks: it is a symbolic link to no directory"));
  fs::remove(places_.hooksDirectory);
  write(places_.hooksDirectory, "a file", fs::perms(0644));
  EXPECT_THAT(refusals(), HasSubstr("hooks: it is no directory"));
  fs::remove(places_.hooksDirectory);
  fs::create_directory(places_.hooksDirectory);
  fs::create_symlink(folder_ / "nothing", places_.folder());
  EXPECT_THAT(refusals(), HasSubstr("qemu.d: it is a symbolic link to no directory"));
  places_.hooksDirectory = folder_ / "none/hooks";
  EXPECT_THAT(refusals(), HasSubstr("No such file or directory"));
  write(folder_ / "none", "a file", fs::perms(0644));
  EXPECT_THAT(refusals(), HasSubstr("Not a directory"));
}

TEST_F(HookFiles, LinkToADirectoryIsOne) {
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", places_.hooksDirectory);
  EXPECT_THAT(plannedLinks(places_), SizeIs(2));
  EXPECT_THAT(linkHook(places_), SizeIs(2));
}

TEST_F(HookFiles, DirectoryMayEndWithASlash) {
  EXPECT_EQ(placesFrom(folder_ / "hooks/", places_.binary).hooksDirectory, places_.hooksDirectory);
  EXPECT_EQ(placesFrom(folder_ / "other/../hooks/.", places_.binary).hooksDirectory,
            places_.hooksDirectory);
  EXPECT_TRUE(placesFrom("/etc/libvirt/hooks/", places_.binary).areLibvirts());
  EXPECT_FALSE(placesFrom("/etc/libvirt", places_.binary).areLibvirts());
  const auto missing = placesFrom(folder_ / "none/", places_.binary);
  EXPECT_THAT(plannedLinks(missing), SizeIs(3)) << "as linkHook(), which creates one directory";
}

TEST_F(HookFiles, OnlyAReloadOfADaemonIsAChange) {
  const auto libvirts = placesFrom("/etc/libvirt/hooks", places_.binary);
  EXPECT_TRUE(plannedReload(libvirts, false).isChange);
  EXPECT_FALSE(plannedReload(libvirts, true).isChange);
  EXPECT_THAT(plannedReload(libvirts, true).text, HasSubstr("only after a reload"));
  EXPECT_FALSE(plannedReload(places_, false).isChange);
}

TEST_F(HookFiles, LeavesNoTemporaryFilesInHooksDirectories) {
  linkHook(places_);
  EXPECT_EQ(std::distance(fs::directory_iterator(places_.folder()), {}), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(places_.hooksDirectory), {}), 1);
}

TEST_F(HookFiles, ReplacesOlderVfpassLink) {
  fs::create_directories(places_.folder());
  fs::create_symlink("/opt/old/vfpass-qemu-hook", places_.link());
  EXPECT_THAT(linkHook(places_), SizeIs(1));
  EXPECT_EQ(fs::read_symlink(places_.link()), places_.binary);
}

TEST_F(HookFiles, RefusesToReplaceOrRemoveForeignLink) {
  fs::create_directories(places_.folder());
  fs::create_symlink("/opt/theirs", places_.link());
  EXPECT_THAT(errorOf([&] { linkHook(places_); }), HasSubstr("not a vfpass link"));
  EXPECT_THAT(errorOf([&] { unlinkHook(places_); }), HasSubstr("not a vfpass link"));
  EXPECT_EQ(fs::read_symlink(places_.link()), "/opt/theirs");
}

TEST_F(HookFiles, DoesNotCreateLibvirtConfigurationDirectory) {
  places_.hooksDirectory = folder_ / "etc/libvirt/hooks";
  EXPECT_THAT(errorOf([&] { linkHook(places_); }), HasSubstr("ENOENT"));
  EXPECT_FALSE(fs::exists(folder_ / "etc"));
}

TEST_F(HookFiles, DetectsTheHooksThatLibvirtDetects) {
  EXPECT_FALSE(anyHookPresent(places_));
  write(places_.folder() / "notes.txt", "x", fs::perms(0644));
  fs::create_symlink("/missing", places_.folder() / "dangling");
  EXPECT_FALSE(anyHookPresent(places_));
  write(places_.folder() / "theirs", "x", fs::perms(0755));
  EXPECT_TRUE(anyHookPresent(places_));
  fs::remove(places_.folder() / "theirs");
  write(places_.single(), "x", fs::perms(0755));
  EXPECT_TRUE(anyHookPresent(places_));
}

TEST_F(HookFiles, AcceptsProgramThatRuns) {
  writeProgram("#!/bin/sh\nexit 1\n");
  EXPECT_NO_THROW(requireLoadable(places_.binary));
}

TEST_F(HookFiles, RefusesProgramsThatLibvirtCannotRun) {
  const auto refusal = [&] { return errorOf([&] { requireLoadable(places_.binary); }); };
  EXPECT_THAT(refusal(), HasSubstr("ENOENT"));
  writeProgram("#!/bin/sh\n", fs::perms(0644));
  EXPECT_THAT(refusal(), HasSubstr("not an executable file"));
  writeProgram("#!/missing/interpreter\n");
  EXPECT_THAT(refusal(), HasSubstr("cannot be started"));
  writeProgram("#!/bin/sh\nexit 127\n");
  EXPECT_THAT(refusal(), HasSubstr("cannot be loaded"));
  writeProgram("#!/bin/sh\nkill -9 $$\n");
  EXPECT_THAT(refusal(), HasSubstr("killed by signal 9"));
  writeProgram("#!/bin/sh\n", fs::perms(0775));
  EXPECT_THAT(refusal(), HasSubstr("writable by other users"));
  fs::remove(places_.binary);
  fs::create_directory(places_.binary);
  EXPECT_THAT(refusal(), HasSubstr("not an executable file"));
}

TEST_F(HookFiles, RunsProgramWithEmptyEnvironment) {
  writeProgram("#!/bin/sh\n[ -z \"$HOME\" ] || exit 127\n");
  EXPECT_NO_THROW(requireLoadable(places_.binary));
}

TEST_F(HookFiles, CopiesProgramCompletelyAndMakesItExecutable) {
  const std::string content(200000, 'x');
  write(folder_ / "source", content, fs::perms(0600));
  copyProgram(folder_ / "source", places_.binary);
  EXPECT_EQ(read(places_.binary), content);
  EXPECT_EQ(fs::status(places_.binary).permissions(), fs::perms(0755));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2) << "a temporary file was left";
}

TEST_F(HookFiles, FailedCopyLeavesTargetUnchanged) {
  writeProgram("old");
  EXPECT_THAT(errorOf([&] { copyProgram(folder_ / "missing", places_.binary); }),
              HasSubstr("ENOENT"));
  EXPECT_EQ(read(places_.binary), "old");
}

}  // namespace
}  // namespace vfpass::install
