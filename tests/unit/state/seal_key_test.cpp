#include "vfpass/state/seal_key_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <utility>

#include "child.hpp"
#include "fake/temporary_folder.hpp"

namespace {

// Runs once, before the next renameat2(2): the moment at which another process can be faster.
std::function<void()> beforeRename;

}  // namespace

// In place of libc's.
extern "C" int renameat2(int fromFolder, const char* from, int toFolder, const char* to,
                         unsigned flags) noexcept {
  if (const auto first = std::exchange(beforeRename, nullptr)) {
    first();
  }
  return static_cast<int>(::syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags));
}

namespace vfpass::state {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace fs = std::filesystem;

class SealKeyTest : public testing::Test {
 protected:
  SealKeyTest() { write(places.machineId, "0123456789ABCDEF0123456789abcdef\n"); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  Error errorOf() const {
    try {
      readSealKey(places);
    } catch (const Error& error) {
      return error;
    }
    return Error("no failure");
  }

  void make() { static_cast<void>(makeSealKey(places)); }

  fake::TemporaryFolder temporary;
  SealKeyPlaces places{temporary.path() / "etc" / "vfpass", temporary.path() / "machine-id"};
  fs::path file = places.configDirectory / "seal.key";
};

TEST_F(SealKeyTest, ReadsMissingKeyAsNoneWithoutCreatingIt) {
  EXPECT_THAT(readSealKey(places).secret, IsEmpty());
  EXPECT_FALSE(fs::exists(places.configDirectory));
}

TEST_F(SealKeyTest, CreatesPrivateKeyOnce) {
  const SealKey key = makeSealKey(places);
  EXPECT_THAT(key.secret, SizeIs(32));
  EXPECT_NE(key.secret, std::vector<std::uint8_t>(32));
  EXPECT_EQ(key.hostId, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(makeSealKey(places).secret, key.secret);
  EXPECT_EQ(readSealKey(places).secret, key.secret);
  EXPECT_EQ(std::distance(fs::directory_iterator(places.configDirectory), {}), 1)
      << "no temporary file is left";
}

TEST_F(SealKeyTest, ConcurrentCreationYieldsTheSameKey) {
  std::vector<std::unique_ptr<Child>> children;
  for (int number = 0; number < 8; ++number) {
    children.push_back(std::make_unique<Child>([&](const Child::Say& say) {
      const SealKey key = makeSealKey(places);
      say(std::string(key.secret.begin(), key.secret.end()).find('\0') == 0
              ? "zero"
              : std::to_string(
                    std::hash<std::string>()(std::string(key.secret.begin(), key.secret.end()))));
    }));
  }
  std::set<std::string> keys;
  for (auto& child : children) {
    keys.insert(child->hear());
    EXPECT_EQ(child->wait(), 0);
  }
  EXPECT_THAT(keys, SizeIs(1));
}

// The other process may have sealed metadata with its key already.
TEST_F(SealKeyTest, KeepsTheKeyThatAnotherProcessCreatesFirst) {
  beforeRename = [&] {
    write(file, std::string(64, 'a') + "\n");
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  };
  const SealKey key = makeSealKey(places);
  ASSERT_FALSE(beforeRename) << "the key was not created with renameat2(2)";
  EXPECT_THAT(key.secret, testing::AllOf(SizeIs(32), Each(0xaa)));
  EXPECT_EQ(readSealKey(places).secret, key.secret);
  EXPECT_EQ(std::distance(fs::directory_iterator(places.configDirectory), {}), 1)
      << "no temporary file is left";
}

TEST_F(SealKeyTest, RefusesFileAccessibleToOthers) {
  make();
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U}) {
    ::chmod(file.c_str(), mode);
    EXPECT_THAT(errorOf().what(), HasSubstr("other users can read or write it")) << mode;
    EXPECT_THAT(errorOf().remedy(), HasSubstr("chmod 0600 " + file.string()));
    EXPECT_EQ(errorOf().code(), ExitCode::badInput);
  }
}

TEST_F(SealKeyTest, RefusesDirectoryWritableByOthers) {
  make();
  ::chmod(places.configDirectory.c_str(), 0757);
  EXPECT_THAT(errorOf().what(), HasSubstr("other users can write to its directory"));
}

TEST_F(SealKeyTest, RefusesAnotherOwner) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root to change the owner of files";
  }
  make();
  ASSERT_EQ(::chown(file.c_str(), 65534, 0), 0);
  EXPECT_THAT(errorOf().what(), HasSubstr("owned by user id 65534"));
}

TEST_F(SealKeyTest, RefusesLinksDirectoriesAndFifos) {
  make();
  fs::rename(file, temporary.path() / "elsewhere");
  fs::create_symlink(temporary.path() / "elsewhere", file);
  EXPECT_THAT(errorOf().what(), HasSubstr("symbolic link"));
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(errorOf().what(), HasSubstr("not a regular file"));
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_THAT(errorOf().what(), HasSubstr("not a regular file"));
}

TEST_F(SealKeyTest, RefusesInvalidKey) {
  make();
  for (const std::string& text : {std::string(), std::string("\n"), std::string(62, 'a'),
                                  std::string(66, 'a'), std::string(64, 'g')}) {
    write(file, text);
    EXPECT_THAT(errorOf().what(), HasSubstr("not 64 hexadecimal digits")) << text;
  }
}

TEST_F(SealKeyTest, RefusesHostWithoutMachineId) {
  for (const char* text : {"", "uninitialized\n", "0123"}) {
    write(places.machineId, text);
    EXPECT_THROW(makeSealKey(places), Error) << text;
    EXPECT_FALSE(fs::exists(places.configDirectory));
  }
}

}  // namespace
}  // namespace vfpass::state
