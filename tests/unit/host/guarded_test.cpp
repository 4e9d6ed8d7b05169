#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "deadline.hpp"
#include "guarded_child.hpp"
#include "guarded_helper.hpp"
#include "hosts/sysfs_tree.hpp"
#include "kernel_write.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

TEST(Guarded, BringsBackWhatTheChildSays) {
  const std::string words(200000, 'w');  // more than a pipe holds
  const auto reply = runGuarded(milliseconds(5000), -1,
                                [&](int pipe) { writeAll(pipe, words.data(), words.size()); });
  EXPECT_TRUE(reply.finished);
  EXPECT_EQ(reply.bytes, words);
}

TEST(Guarded, LeavesAtTheDeadlineWithNoChildToWaitFor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const auto begin = std::chrono::steady_clock::now();
  const auto reply = runGuarded(milliseconds(100), reading.get(), [&](int pipe) {
    char byte = 'a';
    writeAll(pipe, &byte, 1);
    // Nobody writes: the child hangs here until this test's end of the pipe closes.
    static_cast<void>(!::read(reading.get(), &byte, 1));
  });
  EXPECT_FALSE(reply.finished);
  EXPECT_EQ(reply.bytes, "a");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(3000));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Guarded, ChildHoldsNoOtherDescriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), 0), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const FileDescriptor kept(::open("/dev/null", O_RDONLY));
  const auto reply = runGuarded(milliseconds(5000), kept.get(), [&](int pipe) {
    int open = 0;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) {
      open += ::fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0;
    }
    const int error = ::fcntl(kept.get(), F_GETFD) >= 0 ? open : -1;
    writeAll(pipe, &error, sizeof error);
  });
  int open = 0;
  ASSERT_EQ(reply.bytes.size(), sizeof open);
  std::memcpy(&open, reply.bytes.data(), sizeof open);
  EXPECT_EQ(open, 2);
}

TEST(GuardedWriter, WritesAFile) {
  const hosts::SysfsTree tree;
  tree.file("sys/value", "");
  const Root root(tree.path());
  GuardedWriter(root).write("sys/value", "vfio-pci\n", "0000:01:00.1", milliseconds(5000));
  EXPECT_EQ(tree.content("sys/value"), "vfio-pci\n");
}

TEST(GuardedWriter, TellsTheSystemsReason) {
  const Root root;
  try {
    GuardedWriter(root).write("dev/full", "0\n", "0000:01:00.1", milliseconds(5000));
    FAIL();
  } catch (const WriteError& error) {
    EXPECT_EQ(error.number(), ENOSPC);
    const std::string message = error.what();
    EXPECT_NE(message.find("0000:01:00.1: writing \"0\" to /dev/full"), std::string::npos)
        << message;
    EXPECT_NE(message.find("ENOSPC"), std::string::npos) << message;
  }
  EXPECT_THROW(GuardedWriter(root).write("sys/nowhere", "0", "x", milliseconds(5000)), WriteError);
}

TEST(GuardedWriter, NamesDeviceAndFileThatHang) {
  const hosts::SysfsTree tree;
  const auto path = tree.path() / "unbind";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const FileDescriptor both(::open(path.c_str(), O_RDWR | O_NONBLOCK));
  const std::string block(4096, 'x');
  while (::write(both.get(), block.data(), block.size()) > 0) {
  }
  const Root root(tree.path());
  try {
    GuardedWriter(root).write("unbind", "0000:01:00.1", "0000:01:00.1", milliseconds(50));
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_STREQ(error.what(),
                 "0000:01:00.1: the write to /unbind did not return within 50 ms; something still "
                 "holds the device");
  }
}

TEST(GuardedWriter, GoesOnAfterAWriteThatHangs) {
  const hosts::SysfsTree tree;
  tree.file("value", "");
  const auto path = tree.path() / "unbind";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const FileDescriptor both(::open(path.c_str(), O_RDWR | O_NONBLOCK));
  const std::string block(4096, 'x');
  while (::write(both.get(), block.data(), block.size()) > 0) {
  }
  const Root root(tree.path());
  GuardedWriter writer(root);
  EXPECT_THROW(writer.write("unbind", "0000:01:00.1", "x", milliseconds(50)), TimeoutError);
  writer.write("value", "one\n", "x", milliseconds(5000));
  EXPECT_EQ(writer.read("value", "x", milliseconds(5000)), "one\n");
}

TEST(GuardedWriter, Reads) {
  const hosts::SysfsTree tree;
  tree.file("driver_override", "vfio-pci\n");
  tree.file("empty", "");
  const Root root(tree.path());
  GuardedWriter writer(root);
  EXPECT_EQ(writer.read("driver_override", "x", milliseconds(5000)), "vfio-pci\n");
  EXPECT_EQ(writer.read("empty", "x", milliseconds(5000)), "");
  EXPECT_THROW(writer.read("nowhere", "x", milliseconds(5000)), Error);
}

std::string firstLine(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The guarded processes that this process has started: they keep its command line.
std::set<pid_t> helpers() {
  const std::string ours = firstLine("/proc/self/cmdline");
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (firstLine(entry.path() / "comm") == "vfpass-guarded" &&
        firstLine(entry.path() / "cmdline") == ours) {
      found.insert(std::stoi(entry.path().filename()));
    }
  }
  return found;
}

TEST(GuardedHelper, IsOneProcessThatEndsWithItsOwner) {
  // One that was there before this test may go at any time, so only new ones count.
  const auto before = helpers();
  const auto fresh = [&] {
    std::set<pid_t> found = helpers();
    std::erase_if(found, [&](pid_t process) { return before.contains(process); });
    return found;
  };
  const FileDescriptor file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  {
    GuardedHelper helper;
    EXPECT_EQ(helper.write(file.get(), "x", milliseconds(5000)).error, 0);
    const auto first = fresh();
    EXPECT_EQ(first.size(), 1U);
    EXPECT_EQ(helper.write(file.get(), "x", milliseconds(5000)).error, 0);
    EXPECT_EQ(fresh(), first);
    // Killed while it has nothing to do: the next call starts another.
    ASSERT_EQ(::kill(*first.begin(), SIGKILL), 0);
    EXPECT_TRUE(pollUntil(Deadline(milliseconds(5000)), [&] { return fresh().empty(); }));
    EXPECT_EQ(helper.write(file.get(), "x", milliseconds(5000)).error, 0);
  }
  EXPECT_TRUE(pollUntil(Deadline(milliseconds(5000)), [&] { return fresh().empty(); }));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "nobody is left to wait for";
}

TEST(GuardedHelper, HoldsNoOtherDescriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), 0), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const FileDescriptor file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  GuardedHelper helper;
  EXPECT_EQ(helper.write(file.get(), "x", milliseconds(5000)).error, 0);
  writing.reset();
  pollfd wait{reading.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 5000), 1);
}

TEST(Duration, ReadsWell) {
  EXPECT_EQ(durationText(milliseconds(20000)), "20 s");
  EXPECT_EQ(durationText(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(durationText(milliseconds(50)), "50 ms");
}

}  // namespace
}  // namespace vfpass::host
