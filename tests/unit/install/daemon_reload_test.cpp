#include "vfpass/install/hook_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace vfpass::install {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// A process with the comm `name` that SIGHUP kills (default action).
class Daemon {
 public:
  explicit Daemon(const char* name) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_NAME, name);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      signal(SIGHUP, SIG_DFL);
      close(ready[0]);
      close(ready[1]);  // the parent reads the end of the pipe once the name is set
      while (true) {
        pause();
      }
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 0);
    close(ready[0]);
  }
  ~Daemon() { endedBy(SIGKILL); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Sends `fallback` and returns the signal that killed the process, which may be an earlier one.
  int endedBy(int fallback) {
    if (pid_ > 0) {
      kill(pid_, fallback);
      waitpid(pid_, &status_, 0);
      pid_ = 0;
    }
    return WTERMSIG(status_);
  }

 private:
  pid_t pid_ = 0;
  int status_ = 0;
};

class DaemonReload : public testing::Test {
 protected:
  DaemonReload() {
    std::string name = (fs::temp_directory_path() / "vfpass-run-XXXXXX").string();
    run_ = mkdtemp(name.data());
  }
  ~DaemonReload() override {
    std::error_code ignored;
    fs::remove_all(run_, ignored);
  }
  void writePid(const std::string& daemon, const std::string& text) const {
    std::ofstream(run_ / (daemon + ".pid")) << text;
  }

  fs::path run_;
};

constexpr const char* noDaemon = "no libvirt daemon is running";

TEST_F(DaemonReload, ReportsThatNoDaemonRuns) {
  EXPECT_THAT(reloadLibvirt(run_), ElementsAre(HasSubstr(noDaemon)));
}

TEST_F(DaemonReload, SendsSighupToDaemon) {
  Daemon daemon("virtqemud");
  writePid("virtqemud", std::to_string(daemon.pid()) + "\n");
  EXPECT_THAT(reloadLibvirt(run_), ElementsAre(HasSubstr("reloaded virtqemud")));
  EXPECT_EQ(daemon.endedBy(SIGHUP), SIGHUP);
}

TEST_F(DaemonReload, SendsNothingToOtherProcessWithReusedPid) {
  Daemon other("something-else");
  writePid("libvirtd", std::to_string(other.pid()));
  EXPECT_THAT(reloadLibvirt(run_), ElementsAre(HasSubstr(noDaemon)));
  EXPECT_EQ(other.endedBy(SIGTERM), SIGTERM) << "the process received SIGHUP";
}

TEST_F(DaemonReload, IgnoresInvalidPidFiles) {
  for (const char* text : {"", "0", "-1", "1x", "99999999999", "4194305"}) {
    writePid("libvirtd", text);
    EXPECT_THAT(reloadLibvirt(run_), ElementsAre(HasSubstr(noDaemon))) << text;
  }
}

}  // namespace
}  // namespace vfpass::install
