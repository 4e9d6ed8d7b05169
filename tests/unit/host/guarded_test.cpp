#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

#include "guarded_children.hpp"
#include "helper/guarded_child.hpp"
#include "holders/processes.hpp"
#include "hosts/sysfs_tree.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

constexpr PciAddress vfAddress{0, 1, 0, 1};

TEST(Guarded, ReturnsOutputOfChild) {
  const std::string words(200000, 'w');  // more than a pipe holds
  const auto reply = runGuarded(milliseconds(5000), -1,
                                [&](int pipe) { writeAll(pipe, words.data(), words.size()); });
  EXPECT_TRUE(reply.finished);
  EXPECT_EQ(reply.bytes, words);
}

TEST(Guarded, EndsAChildThatIsLate) {
  const auto reply = runGuarded(milliseconds(1), -1, [](int) {
    while (true) {
      ::pause();
    }
  });
  EXPECT_FALSE(reply.finished);
  EXPECT_TRUE(endGuarded(reply.child, milliseconds(5000)));
  EXPECT_TRUE(hasNoChild());
  EXPECT_TRUE(endGuarded(reply.child, milliseconds(5000))) << "kills no other process";
}

TEST(Guarded, ReturnsAtDeadlineAndReapsTheChildLater) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const auto begin = std::chrono::steady_clock::now();
  // Within this time a new process must have run, also on a busy machine.
  const auto reply = runGuarded(milliseconds(1500), reading.get(), [&](int pipe) {
    char byte = 'a';
    writeAll(pipe, &byte, 1);
    // Nothing is written: the child hangs here until this test closes its end of the pipe.
    static_cast<void>(!::read(reading.get(), &byte, 1));
  });
  EXPECT_FALSE(reply.finished);
  EXPECT_EQ(reply.bytes, "a");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(4500));
  EXPECT_EQ(::waitpid(reply.child, nullptr, WNOHANG), 0) << "the child is still running";
  writing.reset();
  EXPECT_TRUE(hasNoChild());
}

TEST(Guarded, ReapsEarlierChildren) {
  for (int count = 0; count < 20; ++count) {
    EXPECT_TRUE(runGuarded(milliseconds(5000), -1, [](int /*pipe*/) {}).finished);
  }
  EXPECT_TRUE(hasNoChild());
}

TEST(Guarded, LeavesOtherChildrenAlone) {
  const pid_t other = ::fork();
  if (other == 0) {
    ::_exit(7);
  }
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(other), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(runGuarded(milliseconds(5000), -1, [](int /*pipe*/) {}).finished);
  reapGuarded();
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Guarded, ChildHasNoOtherDescriptors) {
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

TEST(GuardedWriter, WritesFile) {
  const hosts::SysfsTree tree;
  tree.file("sys/value", "");
  const Root root(tree.path());
  GuardedWriter(root).write("sys/value", "vfio-pci\n", vfAddress, milliseconds(5000));
  EXPECT_EQ(tree.content("sys/value"), "vfio-pci\n");
}

TEST(GuardedWriter, ReportsErrno) {
  const Root root;
  try {
    GuardedWriter(root).write("dev/full", "0\n", vfAddress, milliseconds(5000));
    FAIL();
  } catch (const WriteError& error) {
    EXPECT_EQ(error.number(), ENOSPC);
    const std::string message = error.what();
    EXPECT_NE(message.find("0000:01:00.1: cannot write \"0\" to /dev/full"), std::string::npos)
        << message;
    EXPECT_NE(message.find("ENOSPC"), std::string::npos) << message;
  }
  EXPECT_THROW(GuardedWriter(root).write("sys/nowhere", "0", vfAddress, milliseconds(5000)),
               WriteError);
}

TEST(GuardedWriter, NamesDeviceAndFileOnTimeout) {
  const hosts::SysfsTree tree;
  const auto path = tree.path() / "unbind";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const FileDescriptor both(::open(path.c_str(), O_RDWR | O_NONBLOCK));
  const std::string block(4096, 'x');
  while (::write(both.get(), block.data(), block.size()) > 0) {
  }
  const Root root(tree.path());
  try {
    GuardedWriter(root).write("unbind", "0000:01:00.1", vfAddress, milliseconds(50));
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_STREQ(error.what(),
                 "0000:01:00.1: the write to /unbind did not return within 50 ms; something still "
                 "holds the device");
  }
}

TEST(GuardedWriter, ContinuesAfterHangingWrite) {
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
  EXPECT_THROW(writer.write("unbind", "0000:01:00.1", vfAddress, milliseconds(50)), TimeoutError);
  writer.write("value", "one\n", vfAddress, milliseconds(5000));
  EXPECT_EQ(writer.read("value", vfAddress, milliseconds(5000)), "one\n");
}

// A file whose write never returns: a full pipe.
class FullPipe {
 public:
  explicit FullPipe(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) != 0) {
      throw std::runtime_error("mkfifo failed");
    }
    both_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const std::string block(4096, 'x');
    while (::write(both_.get(), block.data(), block.size()) > 0) {
    }
  }

 private:
  FileDescriptor both_;
};

std::string failureText(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(GuardedWriter, WritesInParallelWithOneDeadline) {
  const hosts::SysfsTree tree;
  tree.file("a/reset", "");
  tree.file("d/reset", "");
  tree.file("b/x", "");
  tree.file("e/x", "");
  const FullPipe hanging(tree.path() / "b/reset");
  const FullPipe alsoHanging(tree.path() / "e/reset");
  const Root root(tree.path());
  GuardedWriter writer(root);
  const auto begin = std::chrono::steady_clock::now();
  const auto failures = writer.writeTogether({{{0, 1, 0, 1}, "a/reset", "1"},
                                              {{0, 1, 0, 2}, "b/reset", "1"},
                                              {{0, 1, 0, 3}, "c/reset", "1"},
                                              {{0, 1, 0, 4}, "d/reset", "1"},
                                              {{0, 1, 0, 5}, "e/reset", "1"}},
                                             milliseconds(1500));
  // Waiting for one after the other would take twice the deadline.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2900));
  ASSERT_EQ(failures.size(), 5U);
  EXPECT_FALSE(failures[0]);
  EXPECT_NE(failureText(failures[1]).find("0000:01:00.2: the write to /b/reset did not return"),
            std::string::npos);
  EXPECT_NE(failureText(failures[2]).find("0000:01:00.3: cannot write"), std::string::npos);
  EXPECT_FALSE(failures[3]);
  EXPECT_TRUE(failures[4]);
  EXPECT_EQ(tree.content("a/reset"), "1");
  EXPECT_EQ(tree.content("d/reset"), "1");
}

TEST(GuardedWriter, HangingWriteIsMarkedWithDevice) {
  const hosts::SysfsTree tree;
  tree.file("value", "");
  const FullPipe hanging(tree.path() / "unbind");
  const Root root(tree.path());
  // Unique to this process: a parallel run of this program also searches for such names.
  const auto number = static_cast<std::uint32_t>(::getpid());
  const PciAddress device{0x10000 + (number >> 8U), static_cast<std::uint8_t>(number), 0, 7};
  const auto pending = [&] {
    const auto list = readProcesses(Root());
    return std::ranges::any_of(list.processes, [&](const Process& process) {
      return markedDevice(Root(), process.id, process.name) == device;
    });
  };
  GuardedWriter writer(root);
  writer.write("value", "1", device, milliseconds(5000));
  EXPECT_FALSE(pending()) << "the mark is removed after a completed write";
  EXPECT_THROW(writer.write("unbind", "x", device, milliseconds(50)), TimeoutError);
  EXPECT_TRUE(pollUntil(Deadline(milliseconds(5000)), pending));
}

// As in CallMark, by a user who starts a program of root.
void markAsOtherUser(const char* name) {
  ::prctl(PR_SET_NAME, name);
  if (::seteuid(65534) == 0) {
    static_cast<void>(::memfd_create(name, 0));
    static_cast<void>(::seteuid(0));
  }
}

void markAsRoot(const char* name) {
  ::prctl(PR_SET_NAME, name);
  static_cast<void>(::memfd_create(name, 0));
}

TEST(CallMark, IsRecognizedByOwnerOfFileAndNotByName) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can act as other users";
  }
  const std::string name = taskName(vfAddress);
  const auto isMarked = [&](void (*mark)(const char*)) {
    std::array<int, 2> started{};
    std::array<int, 2> ended{};
    EXPECT_EQ(::pipe2(started.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(ended.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    char byte = 'x';
    if (child == 0) {
      ::close_range(0, 2, 0);
      ::close(ended[1]);
      mark(name.c_str());
      static_cast<void>(::write(started[1], &byte, 1) + ::read(ended[0], &byte, 1));
      ::_exit(0);
    }
    EXPECT_EQ(::read(started[0], &byte, 1), 1);
    const bool found = markedDevice(Root(), std::to_string(child), name).has_value();
    for (const int end : {started[0], started[1], ended[0], ended[1]}) {
      ::close(end);
    }
    ::waitpid(child, nullptr, 0);
    return found;
  };
  EXPECT_FALSE(isMarked([](const char* chosen) { ::prctl(PR_SET_NAME, chosen); }));
  EXPECT_FALSE(isMarked(markAsOtherUser));
  EXPECT_TRUE(isMarked(markAsRoot));
}

TEST(GuardedWriter, ReadsFile) {
  const hosts::SysfsTree tree;
  tree.file("driver_override", "vfio-pci\n");
  tree.file("empty", "");
  const Root root(tree.path());
  GuardedWriter writer(root);
  EXPECT_EQ(writer.read("driver_override", vfAddress, milliseconds(5000)), "vfio-pci\n");
  EXPECT_EQ(writer.read("empty", vfAddress, milliseconds(5000)), "");
  EXPECT_THROW(writer.read("nowhere", vfAddress, milliseconds(5000)), Error);
}

std::string firstLine(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The guarded processes started by this process: they inherit its command line.
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

// Makes the command line unique, because a parallel run of this program has helpers with the same
// one. The kernel reads it from argv[0], and helpers inherit its value at their start.
void markCommandLine() {
  const std::string number = std::to_string(::getpid());
  ASSERT_GT(std::strlen(program_invocation_name), number.size());
  std::copy(number.begin(), number.end(), program_invocation_name);
}

// True when the process is gone or a zombie. An exiting process loses its memory, and with it the
// command line, before its descriptors (do_exit).
bool hasEnded(pid_t process) {
  const std::string status = firstLine("/proc/" + std::to_string(process) + "/stat");
  return status.empty() || status.find(") Z") != std::string::npos;
}

TEST(GuardedHelper, ReusesOneProcessThatEndsWithOwner) {
  ASSERT_NO_FATAL_FAILURE(markCommandLine());
  // Count only new helpers: one that existed before this test may exit at any time.
  const auto before = helpers();
  const auto fresh = [&] {
    std::set<pid_t> found = helpers();
    std::erase_if(found, [&](pid_t process) { return before.contains(process); });
    return found;
  };
  const FileDescriptor file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  {
    GuardedHelper helper;
    EXPECT_EQ(helper.write(file.get(), "x", "vf0000:01:00.1", milliseconds(5000)).error, 0);
    const auto first = fresh();
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(helper.write(file.get(), "x", "vf0000:01:00.1", milliseconds(5000)).error, 0);
    EXPECT_EQ(fresh(), first);
    // After a helper was killed while idle, the next call starts another one.
    ASSERT_EQ(::kill(*first.begin(), SIGKILL), 0);
    EXPECT_TRUE(pollUntil(Deadline(milliseconds(5000)), [&] { return hasEnded(*first.begin()); }));
    EXPECT_EQ(helper.write(file.get(), "x", "vf0000:01:00.1", milliseconds(5000)).error, 0);
  }
  EXPECT_TRUE(pollUntil(Deadline(milliseconds(5000)), [&] { return fresh().empty(); }));
  EXPECT_TRUE(hasNoChild());
}

TEST(GuardedHelper, HasNoOtherDescriptors) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), 0), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const FileDescriptor file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  GuardedHelper helper;
  EXPECT_EQ(helper.write(file.get(), "x", "vf0000:01:00.1", milliseconds(5000)).error, 0);
  writing.reset();
  pollfd wait{reading.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 5000), 1);
}

TEST(WriteRemedy, SuggestsEswitchOnlyWhenDriverRefusesRoot) {
  for (const char* path : {"sys/bus/pci/devices/0000:01:00.0/sriov_numvfs",
                           "sys/bus/pci/devices/0000:01:00.0/sriov/3/node"}) {
    EXPECT_EQ(writeRemedy(path, EPERM, true), eswitchRemedy);
    EXPECT_NE(writeRemedy(path, EPERM, false).find("run as root"), std::string::npos);
    EXPECT_NE(writeRemedy(path, EACCES, true).find("run as root"), std::string::npos);
  }
  EXPECT_NE(writeRemedy("sys/bus/pci/drivers/vfio-pci/bind", EPERM, true).find("run as root"),
            std::string::npos);
}

TEST(Duration, FormatsSecondsAndMilliseconds) {
  EXPECT_EQ(durationText(milliseconds(20000)), "20 s");
  EXPECT_EQ(durationText(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(durationText(milliseconds(50)), "50 ms");
}

}  // namespace
}  // namespace vfpass::host
