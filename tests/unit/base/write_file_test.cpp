#include "vfpass/base/write_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stop_token>
#include <thread>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/error.hpp"

namespace vfpass {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class WriteFileTest : public testing::Test {
 protected:
  WriteFileTest() {
    std::string pattern = (fs::temp_directory_path() / "vfpass-write-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~WriteFileTest() override { fs::remove_all(folder); }
  WriteFileTest(const WriteFileTest&) = delete;
  WriteFileTest& operator=(const WriteFileTest&) = delete;

  static std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }
  static struct stat statusOf(const fs::path& file) {
    struct stat status {};
    EXPECT_EQ(::lstat(file.c_str(), &status), 0);
    return status;
  }

  fs::path folder;
};

// Writes as with a disk that is full after 16 bytes.
template <typename Write>
std::string failureWithoutRoom(Write write) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{16, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const ScopeGuard restore([&] {
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  });
  try {
    write();
  } catch (const Error& error) {
    return std::string(error.what()) + "; " + error.remedy();
  }
  return "";
}

TEST_F(WriteFileTest, CreatesTheFile) {
  createDurably(folder / "a.yaml", "one");
  EXPECT_EQ(read(folder / "a.yaml"), "one");
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(fs::status(folder / "a.yaml").permissions(), fs::perms{0644});
}

TEST_F(WriteFileTest, DoesNotCreateOverAFileOrLink) {
  std::ofstream(folder / "a.yaml") << "kept";
  fs::create_symlink("none", folder / "b.yaml");
  EXPECT_THROW(createDurably(folder / "a.yaml", "new"), Error);
  EXPECT_THROW(createDurably(folder / "b.yaml", "new"), Error);
  EXPECT_EQ(read(folder / "a.yaml"), "kept");
  EXPECT_FALSE(fs::exists(folder / "none"));
  EXPECT_EQ(files(), 2) << "no draft is left";
}

TEST_F(WriteFileTest, ReplacesWithTheModeOfTheOriginal) {
  std::ofstream(folder / "a.yaml") << "old";
  fs::permissions(folder / "a.yaml", fs::perms{0640});
  const auto original = statusOf(folder / "a.yaml");
  replaceDurably(folder / "a.yaml", "new", original);
  EXPECT_EQ(read(folder / "a.yaml"), "new");
  EXPECT_EQ(statusOf(folder / "a.yaml").st_mode, original.st_mode);
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFileTest, ReplacesWithTheOwnerOfTheOriginal) {
  constexpr unsigned otherUser = 54321;
  std::ofstream(folder / "a.yaml") << "old";
  if (::chown((folder / "a.yaml").c_str(), 0, otherUser) != 0) {
    GTEST_SKIP() << "only root can change the owner";
  }
  replaceDurably(folder / "a.yaml", "new", statusOf(folder / "a.yaml"));
  EXPECT_EQ(statusOf(folder / "a.yaml").st_gid, otherUser);
}

TEST_F(WriteFileTest, LeavesNothingWithoutRoom) {
  const std::string text(1000, 'x');
  const auto failure = failureWithoutRoom([&] { createDurably(folder / "a.yaml", text); });
  EXPECT_THAT(failure, HasSubstr("a.yaml: File too large (EFBIG); make room in the file system"));
  EXPECT_EQ(files(), 0);
}

TEST_F(WriteFileTest, KeepsTheOriginalWithoutRoom) {
  std::ofstream(folder / "a.yaml") << "old";
  const auto original = statusOf(folder / "a.yaml");
  const std::string text(1000, 'x');
  EXPECT_NE(failureWithoutRoom([&] { replaceDurably(folder / "a.yaml", text, original); }), "");
  EXPECT_EQ(read(folder / "a.yaml"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFileTest, NamesTheUserWhoMayWrite) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may write everywhere";
  }
  fs::permissions(folder, fs::perms{0555});
  try {
    createDurably(folder / "a.yaml", "new");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.remedy(), HasSubstr("run as root"));
  }
  fs::permissions(folder, fs::perms{0755});
}

TEST_F(WriteFileTest, OutputReplacesTheFile) {
  writeOutputFile(folder / "page.html", "one");
  writeOutputFile(folder / "page.html", "two");
  EXPECT_EQ(read(folder / "page.html"), "two");
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(fs::status(folder / "page.html").permissions(), fs::perms{0644});
}

TEST_F(WriteFileTest, OutputDoesNotFollowASymbolicLink) {
  std::ofstream(folder / "precious") << "kept";
  fs::create_symlink("precious", folder / "page.html");
  writeOutputFile(folder / "page.html", "page");
  EXPECT_EQ(read(folder / "precious"), "kept");
  EXPECT_FALSE(fs::is_symlink(folder / "page.html"));
}

TEST_F(WriteFileTest, OutputToAMissingDirectoryIsAnError) {
  EXPECT_THROW(writeOutputFile(folder / "none" / "page.html", "page"), Error);
}

TEST_F(WriteFileTest, OutputDoesNotReplaceADirectory) {
  fs::create_directories(folder / "page.html" / "inner");
  EXPECT_THROW(writeOutputFile(folder / "page.html", "page"), Error);
  EXPECT_EQ(files(), 1) << "no draft is left";
}

TEST_F(WriteFileTest, OutputReplacesNoLinkToADirectory) {
  fs::create_directory(folder / "inner");
  fs::create_symlink("inner", folder / "page.html");
  EXPECT_THROW(writeOutputFile(folder / "page.html", "page"), Error);
  EXPECT_TRUE(fs::is_symlink(folder / "page.html"));
}

TEST_F(WriteFileTest, OutputGoesIntoAPipe) {
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const FileDescriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  writeOutputFile(pipe, "page");
  std::array<char, 8> text{};
  ASSERT_EQ(::read(reader.get(), text.data(), text.size()), 4);
  EXPECT_EQ(std::string(text.data()), "page");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// Whoever can write to the directory may put a link in place of a pipe, after it was judged and
// before it is opened.
TEST_F(WriteFileTest, OutputWritesIntoNoFileThatReplacesThePipe) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const FileDescriptor reader(::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::ofstream(folder / "precious") << "kept";
  std::jthread replacing([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      fs::create_hard_link(folder / "pipe", folder / "next");
      fs::rename(folder / "next", folder / "page.html");
      fs::create_symlink("precious", folder / "next");
      fs::rename(folder / "next", folder / "page.html");
    }
  });
  constexpr int attempts = 2000;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    try {
      writeOutputFile(folder / "page.html", "page");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("it was replaced meanwhile"));
    }
  }
  EXPECT_EQ(read(folder / "precious"), "kept");
}

// As /dev/stdout leads to a terminal.
TEST_F(WriteFileTest, OutputGoesIntoADeviceThatALinkLeadsTo) {
  fs::create_symlink("/dev/null", folder / "page.html");
  writeOutputFile(folder / "page.html", "page");
  EXPECT_TRUE(fs::is_symlink(folder / "page.html"));
  fs::create_symlink("/dev/full", folder / "full.html");
  EXPECT_THROW(writeOutputFile(folder / "full.html", "page"), Error);
}

TEST_F(WriteFileTest, OutputRefusesAnOpenFileByItsDescriptor) {
  std::ofstream(folder / "open") << "kept";
  const FileDescriptor open(::open((folder / "open").c_str(), O_RDONLY | O_CLOEXEC));
  try {
    writeOutputFile("/proc/self/fd/" + std::to_string(open.get()), "page");
    ADD_FAILURE() << "written";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it leads to an open file"));
  }
  EXPECT_EQ(read(folder / "open"), "kept");
}

}  // namespace
}  // namespace vfpass
