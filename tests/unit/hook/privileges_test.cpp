#include "supervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace vfpass::hook {
namespace {

using Status = std::map<std::string, std::string>;

Status parse(std::istream& stream) {
  Status status;
  std::string line;
  while (std::getline(stream, line)) {
    const auto colon = line.find(':');
    if (colon != std::string::npos) {
      const auto value = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
      status[line.substr(0, colon)] = line.substr(value);
    }
  }
  return status;
}

Status ownStatus() {
  std::ifstream stream("/proc/self/status");
  return parse(stream);
}

std::uint64_t setIn(const Status& status, const char* name) {
  return std::stoull(status.at(name), nullptr, 16);
}

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

constexpr std::uint64_t inEffect = bit(CAP_NET_ADMIN) | bit(CAP_SYS_ADMIN) | bit(CAP_SYSLOG) |
                                   bit(CAP_SYS_PTRACE) | bit(CAP_DAC_READ_SEARCH);
constexpr std::uint64_t permitted = inEffect | bit(CAP_SYS_MODULE);

/// /proc/self/status of a child that reduced its privileges; with `inProgram`, of a program that
/// the child then executed.
Status statusAfterReducing(bool inProgram) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    if (reducePrivileges() != 0) {
      ::_exit(1);
    }
    if (inProgram) {
      ::execl("/bin/cat", "cat", "/proc/self/status", nullptr);
      ::_exit(1);
    }
    std::ifstream stream("/proc/self/status");
    std::ostringstream text;
    text << stream.rdbuf() << "Dumpable:\t" << ::prctl(PR_GET_DUMPABLE) << "\n";
    const std::string bytes = text.str();
    ::_exit(::write(STDOUT_FILENO, bytes.data(), bytes.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int state = 0;
  ::waitpid(child, &state, 0);
  EXPECT_EQ(state, 0);
  std::istringstream stream(text);
  return parse(stream);
}

TEST(Privileges, KeepsOnlyRequiredCapabilities) {
  const Status before = ownStatus();
  const Status after = statusAfterReducing(false);
  EXPECT_EQ(setIn(after, "CapEff"), setIn(before, "CapEff") & inEffect);
  EXPECT_EQ(setIn(after, "CapPrm"), setIn(before, "CapPrm") & permitted);
  EXPECT_EQ(setIn(after, "CapInh"), 0U);
  EXPECT_EQ(setIn(after, "CapAmb"), 0U);
  const bool mayLimit = (setIn(before, "CapEff") & bit(CAP_SETPCAP)) != 0;
  EXPECT_EQ(setIn(after, "CapBnd"), setIn(before, "CapBnd") & (mayLimit ? permitted : ~0ULL));
  EXPECT_EQ(after.at("NoNewPrivs"), "1");
  EXPECT_EQ(after.at("Dumpable"), "0");
}

// Like modprobe, a program gets those of root's capabilities that are permitted, including
// CAP_SYS_MODULE.
TEST(Privileges, ExecutedProgramsGetOnlyPermittedCapabilities) {
  const Status before = ownStatus();
  const Status after = statusAfterReducing(true);
  const std::uint64_t expected = ::geteuid() == 0 ? setIn(before, "CapPrm") & permitted : 0;
  EXPECT_EQ(setIn(after, "CapEff"), expected);
}

}  // namespace
}  // namespace vfpass::hook
