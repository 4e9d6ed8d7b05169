#include "child_process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "fake/temporary_folder.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

using testing::HasSubstr;

constexpr std::chrono::milliseconds replyTimeout{10000};

// A killed process whose parent has ended is a zombie until init waits for it.
bool isGone(pid_t pid) {
  const Deadline deadline(replyTimeout);
  while (!deadline.over()) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number;
    std::string name;
    std::string state;
    if (!(stat >> number >> name >> state) || state == "Z") {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

// Waits until a script reads from the FIFO, and ends its read.
void endRead(const std::filesystem::path& fifo) {
  const Deadline deadline(replyTimeout);
  while (!deadline.over() &&
         FileDescriptor(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).get() < 0) {
    std::this_thread::yield();
  }
}

class LineProcessTest : public testing::Test {
 protected:
  std::string ask(
      const std::string& script, std::chrono::milliseconds timeout = replyTimeout,
      std::size_t limit = 1000, const LineProcess::Checkpoint& checkpoint = [] {}) {
    LineProcess process({"sh", "-c", script}, checkpoint);
    try {
      return process.ask("question", timeout, limit);
    } catch (const Error& error) {
      return std::string("error: ") + error.what();
    }
  }
};

TEST_F(LineProcessTest, RepliesToEachLine) {
  LineProcess process({"sh", "-c", "while read line; do echo \"reply to $line\"; done"}, [] {});
  EXPECT_EQ(process.ask("one", replyTimeout, 1000), "reply to one");
  EXPECT_EQ(process.ask("two", replyTimeout, 1000), "reply to two");
}

TEST_F(LineProcessTest, EndOfProcessIsReportedWithItsLastMessage) {
  EXPECT_EQ(ask("read line; echo banner >&2; echo 'Permission denied (publickey).' >&2; exit 255"),
            "error: sh: Permission denied (publickey).");
  EXPECT_EQ(ask("read line; exit 1"), "error: sh: it ended");
}

TEST_F(LineProcessTest, ReasonThatFollowsABannerAndTheEndOfTheOutputIsReported) {
  const fake::TemporaryFolder folder;
  const auto fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  // After its checkpoint, ask() finds the end of the output at once, and the script goes on.
  EXPECT_EQ(ask("read line; echo banner >&2; exec <&- >&-; read line <'" + fifo.string() +
                    "'; echo reason >&2; exit 255",
                replyTimeout, 1000, [&] { endRead(fifo); }),
            "error: sh: reason");
}

TEST_F(LineProcessTest, SilenceEndsWithTheTimeout) {
  EXPECT_EQ(ask("exec sleep 1000", std::chrono::milliseconds(1000)),
            "error: sh: no reply within 1 s");
}

TEST_F(LineProcessTest, LongReplyIsRefused) {
  EXPECT_EQ(ask("read line; yes | tr -d '\\n' | head -c 100000; sleep 1000"),
            "error: sh: its reply is longer than 1000 bytes");
}

TEST_F(LineProcessTest, FloodOfMessagesDoesNotHideTheReply) {
  EXPECT_EQ(ask("read line; yes 2>/dev/null | head -c 1000000 >&2; echo reply"), "reply");
}

TEST_F(LineProcessTest, EndlessMessagesEndTheProcess) {
  EXPECT_EQ(ask("read line; exec yes >&2"), "error: sh: it wrote more than 1 MiB of messages");
}

TEST_F(LineProcessTest, TimeoutIsReportedBesideTheLastMessage) {
  EXPECT_EQ(ask("echo warning >&2; exec sleep 1000", std::chrono::milliseconds(1000)),
            "error: sh: no reply within 1 s; its last message: warning");
}

TEST_F(LineProcessTest, ProcessThatDoesNotReadDoesNotBlock) {
  LineProcess process({"sleep", "1000"}, [] {});
  EXPECT_THROW(process.ask(std::string(std::size_t{64} << 20U, 'x'), replyTimeout, 1000), Error);
}

TEST_F(LineProcessTest, NothingOfTheProcessRemains) {
  std::string pids;
  {
    LineProcess process({"sh", "-c",
                         "trap '' TERM INT HUP; sh -c \"trap '' TERM INT HUP; while :; do sleep 1; "
                         "done\" & read line; echo $$ $!; while :; do sleep 1; done"},
                        [] {});
    pids = process.ask("question", replyTimeout, 1000);
  }
  std::istringstream numbers(pids);
  for (pid_t pid = 0; numbers >> pid;) {
    EXPECT_TRUE(isGone(pid)) << pid;
  }
}

TEST_F(LineProcessTest, CheckpointInterruptsTheWait) {
  LineProcess process({"sleep", "1000"}, [] { throw std::runtime_error("stopped"); });
  EXPECT_THROW(process.ask("question", replyTimeout, 1000), std::runtime_error);
}

TEST_F(LineProcessTest, MissingProgramIsAnError) {
  EXPECT_THROW(LineProcess({"vfpass-no-such-program"}, [] {}), Error);
}

}  // namespace
}  // namespace vfpass::remote
