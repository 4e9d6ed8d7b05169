#include "vfpass/host/program_output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "helper/guarded_child.hpp"
#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A program that stands in for mstconfig.
class FakeProgram {
 public:
  explicit FakeProgram(const std::string& script) : path_(tree_.path() / "mstconfig") {
    tree_.file("mstconfig", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::optional<std::string> run(std::vector<std::string> arguments,
                                               std::chrono::milliseconds deadline = 20s) const {
    arguments.insert(arguments.begin(), path_.string());
    return programOutput(arguments, deadline);
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return tree_.path() / name;
  }

 private:
  hosts::SysfsTree tree_;
  std::filesystem::path path_;
};

TEST(ProgramOutput, ReturnsBothStreamsAndPassesArgumentsVerbatim) {
  const FakeProgram program("echo \"$#:$1:$2\"; echo trouble >&2; exit 3");
  EXPECT_EQ(program.run({"-d", "$(id) `id` *"}), "2:-d:$(id) `id` *\ntrouble\n");
}

TEST(ProgramOutput, PassesNeitherEnvironmentNorStdin) {
  ::setenv("LD_PRELOAD_TEST", "leaked", 1);
  const FakeProgram program("cat; env; ls /proc/self/fd | wc -l");
  const std::string output = program.run({}).value_or("none");
  EXPECT_THAT(output, HasSubstr("LC_ALL=C\n"));
  EXPECT_THAT(output, testing::Not(HasSubstr("leaked")));
  EXPECT_THAT(output, testing::EndsWith("4\n"));  // 0, 1, 2 and the directory itself
}

TEST(ProgramOutput, ReturnsNothingForMissingProgram) {
  EXPECT_EQ(programOutput({"/nonexistent/mstconfig"}, 20s), std::nullopt);
  EXPECT_EQ(programOutput({}, 20s), std::nullopt);
  const FakeProgram program("");
  std::filesystem::permissions(program.file("mstconfig"), std::filesystem::perms::owner_read);
  if (::geteuid() != 0) {
    EXPECT_EQ(program.run({}), std::nullopt);
  }
}

// The PID that a program wrote to the file. kill(2) finds zombies as well, so they are reaped.
bool endsSoon(const std::filesystem::path& file) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (std::chrono::steady_clock::now() < end) {
    pid_t pid = 0;
    std::ifstream(file) >> pid;
    reapGuarded();
    if (pid != 0 && ::kill(pid, 0) != 0) {
      return true;
    }
    ::usleep(20000);
  }
  return false;
}

TEST(ProgramOutput, ReturnsAtDeadlineAndKillsProgram) {
  const FakeProgram program(
      "trap '' ALRM TERM INT HUP PIPE; echo $$ >\"$1.tmp\"; mv \"$1.tmp\" \"$1\"; "
      "while :; do sleep 1; done");
  const auto file = program.file("pid");
  // A busy machine may not have started the shell at the first deadline.
  for (auto deadline = 100ms; deadline < 20s && !std::filesystem::exists(file); deadline *= 2) {
    EXPECT_EQ(program.run({file.string()}, deadline), std::nullopt);
  }
  EXPECT_TRUE(endsSoon(file));
}

TEST(ProgramOutput, KillsProgramThatWritesTooMuch) {
  const FakeProgram program(
      "trap '' ALRM TERM INT HUP PIPE; echo $$ >\"$1.tmp\"; mv \"$1.tmp\" \"$1\"; yes 2>&-; "
      "while :; do sleep 1; done");
  const auto file = program.file("pid");
  EXPECT_TRUE(program.run({file.string()}));
  EXPECT_TRUE(endsSoon(file));
}

TEST(ProgramOutput, LimitsOutput) {
  const FakeProgram program("exec yes SRIOV_EN");
  const auto output = program.run({});
  ASSERT_TRUE(output);
  EXPECT_LT(output->size(), 2U << 20U);
}

}  // namespace
}  // namespace vfpass::host
