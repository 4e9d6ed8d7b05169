// Attacks by a local user of the guest on files while vfpass writes them. The guest is this
// machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/local_guest.hpp"
#include "setup_guest.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/setup/setup_apply.hpp"

namespace vfpass::setup {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;
constexpr const char* probeText = "#!/bin/sh\necho '{\"protocol\": 1}'\n";

unsigned modeOf(const fs::path& path) {
  struct stat found {};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777U;
}

/// Whether another user can open the file for writing. Without root this test cannot become that
/// user and checks the mode instead.
bool othersCanOpen(const std::string& path) {
  if (::geteuid() != 0) {
    return (modeOf(path) & 0022U) != 0;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setgid(nobody) == 0 && ::setuid(nobody) == 0;
    ::_exit(!other || ::open(path.c_str(), O_WRONLY | O_CLOEXEC) >= 0 ? 1 : 0);
  }
  int state = 0;
  ::waitpid(child, &state, 0);
  return !WIFEXITED(state) || WEXITSTATUS(state) != 0;
}

std::string contentOf(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class ProbeUploadTest : public testing::Test {
 protected:
  ProbeUploadTest() {
    // Let other users reach the directory; temporary directories usually have mode 0700.
    fs::permissions(guest.folder, fs::perms{0755});
    guest.agent.opened = [this](const std::string& name) { attempt(name); };
    guest.agent.written = [this](const std::string& name) { attempt(name); };
  }

  void attempt(const std::string& name) {
    ++attempts;
    opens += othersCanOpen(name) ? 1 : 0;
  }

  agent::PlacedProbe place() { return placeProbe(agent, file, folder, {}); }

  std::string refusal() {
    try {
      place();
    } catch (const agent::AgentUnavailable& error) {
      return error.what();
    }
    return "placed";
  }

  fake::LocalGuest guest;
  agent::Agent agent{guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(60)};
  std::string folder = guest.folder / "probe";
  agent::ProbeFile file{probeText, "vfpass-probe-1"};
  std::string path = folder + "/vfpass-probe-1";
  int attempts = 0;
  int opens = 0;
};

TEST_F(ProbeUploadTest, NoOtherUserCanOpenTheFile) {
  const agent::PlacedProbe placed = place();
  EXPECT_TRUE(placed.pushed);
  EXPECT_EQ(placed.path, path);
  EXPECT_GE(attempts, 2);
  EXPECT_EQ(opens, 0);
  EXPECT_EQ(modeOf(folder), 0700U);
  EXPECT_EQ(modeOf(path), 0700U);
  EXPECT_FALSE(fs::exists(path + ".new"));
  EXPECT_FALSE(place().pushed) << "the same build is already there";
}

TEST_F(ProbeUploadTest, AcceptsDirectoryThatOthersCanRead) {
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms{0755});
  EXPECT_TRUE(place().pushed);
  EXPECT_EQ(opens, 0);
}

TEST_F(ProbeUploadTest, RefusesDirectoryThatTheGroupCanWrite) {
  fs::create_directory(folder);
  for (const unsigned mode : {0775U, 0757U, 01777U}) {
    fs::permissions(folder, fs::perms{mode});
    EXPECT_THAT(refusal(), HasSubstr("can be written by others"));
    EXPECT_TRUE(fs::is_empty(folder));
  }
}

TEST_F(ProbeUploadTest, RefusesParentThatOthersCanWrite) {
  fs::permissions(guest.folder, fs::perms{0777});
  EXPECT_THAT(refusal(), HasSubstr(guest.folder.string() + " can be written by others"));
  EXPECT_FALSE(fs::exists(folder));
  fs::permissions(guest.folder, fs::perms{01777});
  EXPECT_TRUE(place().pushed) << "the sticky bit keeps others from renaming our directory";
}

TEST_F(ProbeUploadTest, RefusesPlantedLinkInPlaceOfDirectory) {
  fs::create_directory(guest.folder / "elsewhere");
  fs::create_symlink(guest.folder / "elsewhere", folder);
  EXPECT_THAT(refusal(), HasSubstr("is a symbolic link"));
  EXPECT_TRUE(fs::is_empty(guest.folder / "elsewhere"));
}

TEST_F(ProbeUploadTest, RefusesDirectoryOfAnotherUser) {
  if (::geteuid() != 0) {
    folder = "/vfpass-probe-of-root";  // without root, chown fails, and so does mkdir here
    EXPECT_NE(refusal(), "placed");
    return;
  }
  fs::create_directory(folder);
  ASSERT_EQ(::chown(folder.c_str(), nobody, nobody), 0);
  EXPECT_THAT(refusal(), HasSubstr("is owned by user 65534"));
}

TEST_F(ProbeUploadTest, RefusesRelativeDirectory) {
  folder = "probe";
  EXPECT_THAT(refusal(), HasSubstr("is not an absolute path"));
}

TEST_F(ProbeUploadTest, ReplacesPlantedFilesInsteadOfFillingThem) {
  fs::create_directory(folder);
  const fs::path victim = guest.folder / "victim";
  std::ofstream(victim) << "unchanged";
  fs::create_symlink(victim, path + ".new");
  EXPECT_TRUE(place().pushed);
  EXPECT_EQ(contentOf(victim), "unchanged");
  EXPECT_FALSE(fs::is_symlink(path));

  fs::remove(path);
  std::ofstream(path + ".new") << "planted";
  fs::permissions(path + ".new", fs::perms{0666});
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((path + ".new").c_str(), nobody, nobody), 0);
  }
  EXPECT_TRUE(place().pushed);
  EXPECT_EQ(opens, 0);
  EXPECT_EQ(contentOf(path), probeText);
}

// Neither the file's name nor its reply to `hello` proves that it is the probe.
TEST_F(ProbeUploadTest, RunsNoFileThatOnlyHasTheRightName) {
  const fs::path proof = guest.folder / "ran";
  const std::string forged = "#!/bin/sh\n: >" + proof.string() + "\necho '{\"protocol\": 1}'\n";
  fs::create_directory(folder);
  std::ofstream(path) << forged;
  fs::permissions(path, fs::perms{0755});
  EXPECT_TRUE(place().pushed) << "other content";
  EXPECT_EQ(contentOf(path), probeText);

  fs::permissions(path, fs::perms{0777});
  EXPECT_TRUE(place().pushed) << "others can write it";
  EXPECT_EQ(modeOf(path), 0700U);

  fs::rename(path, guest.folder / "real");
  fs::create_symlink(guest.folder / "real", path);
  EXPECT_TRUE(place().pushed) << "a link";
  EXPECT_FALSE(fs::exists(proof));
}

TEST_F(ProbeUploadTest, RefusesContentThatChangedDuringUpload) {
  const fs::path proof = guest.folder / "ran";
  guest.agent.written = [&](const std::string& written) {
    std::ofstream(written, std::ios::trunc) << "#!/bin/sh\n: >" + proof.string() + "\n";
  };
  EXPECT_THAT(refusal(), HasSubstr("was changed while it was written"));
  EXPECT_FALSE(fs::exists(proof));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(path + ".new"));
}

TEST_F(ProbeUploadTest, NamesToolThatIsMissingInGuest) {
  const fs::path tools = guest.folder / "tools";
  fs::create_directory(tools);
  for (const char* name : {"chmod", "id", "mkdir", "mv", "rm", "stat"}) {
    fs::create_symlink(fs::path("/usr/bin") / name, tools / name);
  }
  guest.agent.path = tools;
  EXPECT_THAT(refusal(), HasSubstr("sha256sum is missing in the guest"));
  EXPECT_FALSE(fs::exists(path));
}

class SetupUploadTest : public testing::Test {
 protected:
  SetupUploadTest() {
    fs::permissions(guest.root, fs::perms{0755});
    guest.agent.opened = [this](const std::string& path) {
      opened.push_back(path);
      opens += othersCanOpen(path) ? 1 : 0;
    };
    desired.nccl = {3, 41, 0, 16, 22};
  }

  void setUp() {
    const ObservedGuest observed = observeGuest(tools, desired);
    applySetup(tools, planSetup(desired, observed.view, observed.record));
  }

  Error failure() {
    try {
      setUp();
    } catch (const Error& error) {
      return error;
    }
    return Error("no failure");
  }

  SetupGuest guest;
  agent::Agent agent{guest.hypervisor, {}, "train0", std::chrono::seconds(60)};
  SetupTools tools{agent, guest.root.string(), [](const std::string&) {},
                   [](const std::string&) {}};
  DesiredSetup desired;
  std::vector<std::string> opened;
  int opens = 0;
};

TEST_F(SetupUploadTest, NoOtherUserCanOpenTheFiles) {
  guest.write("etc/nccl.conf", "NCCL_DEBUG=INFO\n");
  setUp();
  EXPECT_GE(opened.size(), 2U);
  EXPECT_EQ(opens, 0);
  EXPECT_THAT(guest.read("etc/nccl.conf"), HasSubstr("NCCL_IB_TC=41"));
}

TEST_F(SetupUploadTest, RefusesContentThatChangedDuringUpload) {
  guest.write("etc/nccl.conf", "NCCL_DEBUG=INFO\n");
  const auto original = guest.everything();
  guest.agent.written = [&](const std::string& path) {
    if (path.find("nccl.conf") != std::string::npos) {
      guest.agent.written = {};
      std::ofstream(path, std::ios::app) << "LD_PRELOAD=x\n";
    }
  };
  EXPECT_THAT(failure().what(),
              HasSubstr(".nccl.conf.vfpass-new was changed while it was written"));
  EXPECT_EQ(guest.everything(), original);
}

TEST_F(SetupUploadTest, RefusesDirectoryThatOthersCanWrite) {
  guest.write("etc/nccl.conf", "NCCL_DEBUG=INFO\n");
  fs::permissions(guest.root / "etc", fs::perms{01777});
  const auto original = guest.everything();
  const Error error = failure();
  EXPECT_THAT(error.what(), HasSubstr("/etc can be written by others (mode 01777)"));
  EXPECT_THAT(error.remedy(), HasSubstr("root only"));
  EXPECT_EQ(guest.everything(), original);
  EXPECT_TRUE(opened.empty());
}

TEST_F(SetupUploadTest, ReplacesPlantedLinkInsteadOfFollowingIt) {
  guest.write("etc/nccl.conf", "NCCL_DEBUG=INFO\n");
  guest.write("etc/victim", "unchanged");
  fs::create_symlink(guest.root / "etc/victim", guest.root / "etc/.nccl.conf.vfpass-new");
  setUp();
  EXPECT_EQ(guest.read("etc/victim"), "unchanged");
  EXPECT_FALSE(fs::is_symlink(guest.root / "etc/nccl.conf"));
}

TEST_F(SetupUploadTest, IsUnverifiedWithoutSha256sum) {
  fs::remove(guest.root / "tools/sha256sum");
  const Error error = failure();
  EXPECT_EQ(error.code(), ExitCode::unverified);
  EXPECT_THAT(error.what(), HasSubstr("sha256sum is missing in the guest"));
  EXPECT_THAT(error.what(), HasSubstr("changes in the guest rolled back"));
}

}  // namespace
}  // namespace vfpass::setup
