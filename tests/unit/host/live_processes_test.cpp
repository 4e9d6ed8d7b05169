// Reads the real /proc, with processes and threads that this test starts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "fake/temporary_folder.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "netlink/network_namespaces.hpp"

namespace vfpass::host {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// A device that every Linux has and that any driver serves in the same way: opening it does
// nothing. Its number is fixed (admin-guide/devices.txt).
constexpr const char* loopControl = "/dev/loop-control";
const dev_t loopControlNumber = makedev(10, 237);

FileDescriptor openLoopControl() {
  return FileDescriptor(::open(loopControl, O_RDONLY | O_CLOEXEC));
}

std::string threadId() { return std::to_string(::syscall(SYS_gettid)); }

auto isLoopControl() { return Field(&OpenFile::device, loopControlNumber); }

// A child process that runs `prepare`, reports, and stays until this object is destroyed. `prepare`
// may end the main thread, after it has called `ready`.
class Child {
 public:
  explicit Child(const std::function<bool(const std::function<void(bool)>& ready)>& prepare) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return;
    }
    const FileDescriptor reading(ends[0]);
    FileDescriptor writing(ends[1]);
    id_ = ::fork();
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto report = [&](bool success) {
        const char byte = success ? 'y' : 'n';
        static_cast<void>(!::write(writing.get(), &byte, 1));
      };
      report(prepare(report));
      ::pause();
      ::_exit(0);
    }
    writing.reset();
    char byte = 'n';
    ready_ = ::read(reading.get(), &byte, 1) == 1 && byte == 'y';
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child(Child&&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (id_ > 0) {
      ::kill(id_, SIGKILL);
      ::waitpid(id_, nullptr, 0);
    }
  }
  [[nodiscard]] explicit operator bool() const { return ready_; }
  [[nodiscard]] std::string id() const { return std::to_string(id_); }

 private:
  pid_t id_ = -1;
  bool ready_ = false;
};

// The process with this ID; an empty one if it is missing.
Process find(const ProcessList& list, const std::string& id) {
  const auto found = std::ranges::find(list.processes, id, &Process::id);
  return found == list.processes.end() ? Process() : *found;
}

Process readAgain(const std::string& id) { return find(readProcesses(Root()), id); }

class LiveProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (!openLoopControl()) {
      GTEST_SKIP() << loopControl << " cannot be opened here";
    }
  }
};

// Runs `work` in another thread, then `check` with its ID while it still exists.
void withThread(const std::function<void()>& work,
                const std::function<void(const std::string& id)>& check) {
  std::promise<std::string> ready;
  std::promise<void> done;
  std::thread thread([&] {
    work();
    ready.set_value(threadId());
    done.get_future().wait();
  });
  check(ready.get_future().get());
  done.set_value();
  thread.join();
}

TEST_F(LiveProcesses, FindsDescriptorInTableOfThread) {
  FileDescriptor file;
  withThread(
      [&] {
        ASSERT_EQ(::unshare(CLONE_FILES), 0);
        file = openLoopControl();
      },
      [](const std::string& thread) {
        EXPECT_THAT(readAgain(std::to_string(::getpid())).files,
                    Contains(AllOf(isLoopControl(), Field(&OpenFile::descriptor,
                                                          StartsWith("task/" + thread + "/fd/")))));
      });
  // The number belongs to the table of a thread that has ended.
  static_cast<void>(file.release());
}

TEST_F(LiveProcesses, FindsDescriptorsOfProcessWhoseMainThreadHasEnded) {
  const Child child([](const std::function<void(bool)>& ready) {
    static FileDescriptor file;
    file = openLoopControl();
    const pid_t main = ::getpid();
    std::thread([ready, main] {
      const std::string state = "/proc/" + std::to_string(main) + "/task/" + std::to_string(main);
      // The table is empty once the main thread has ended.
      while (::access((state + "/fd/0").c_str(), F_OK) == 0) {
        std::this_thread::yield();
      }
      ready(static_cast<bool>(file));
      ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);  // of this thread only
    return false;
  });
  ASSERT_TRUE(child);
  const Process process = readAgain(child.id());
  EXPECT_EQ(process.networkNamespace, std::nullopt);
  EXPECT_THAT(process.files, Contains(isLoopControl()));
  ASSERT_THAT(process.threads, SizeIs(1));
  EXPECT_EQ(process.threads[0].namespaces, readNamespaces(Root(), "self"));
}

TEST_F(LiveProcesses, ReadsSharedTableOnce) {
  std::promise<void> done;
  const std::shared_future<void> end(done.get_future());
  std::vector<std::thread> threads;
  for (int count = 0; count < 50; ++count) {
    threads.emplace_back([end] { end.wait(); });
  }
  const Namespaces ours = readNamespaces(Root(), "self");
  const OwnOfThreads own = readThreads(Root(), std::to_string(::getpid()), ours);
  EXPECT_THAT(own.tables, IsEmpty());
  EXPECT_THAT(own.namespaces, IsEmpty());
  done.set_value();
  std::ranges::for_each(threads, &std::thread::join);
}

// Several threads can share a table that the main thread does not have.
TEST_F(LiveProcesses, ReadsTableOfSeveralThreadsOnce) {
  withThread([] { ASSERT_EQ(::unshare(CLONE_FILES), 0); },
             [](const std::string& /*thread*/) {
               std::promise<void> done;
               const std::shared_future<void> end(done.get_future());
               std::promise<void> ready;
               std::thread owner([&] {
                 ASSERT_EQ(::unshare(CLONE_FILES), 0);
                 std::thread second([end] { end.wait(); });
                 std::thread third([end] { end.wait(); });
                 ready.set_value();
                 second.join();
                 third.join();
               });
               ready.get_future().wait();
               const OwnOfThreads own =
                   readThreads(Root(), std::to_string(::getpid()), readNamespaces(Root(), "self"));
               EXPECT_THAT(own.tables, SizeIs(2));
               done.set_value();
               owner.join();
             });
}

TEST_F(LiveProcesses, FindsDeviceNodeOutsideDev) {
  const fake::TemporaryFolder folder;
  const std::string node = (folder.path() / "harmless.txt").string();
  if (::mknod(node.c_str(), S_IFCHR | 0600, loopControlNumber) != 0) {
    GTEST_SKIP() << "no permission to create a device node";
  }
  const FileDescriptor file(::open(node.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    GTEST_SKIP() << "the file system of temporary files has no device nodes";
  }
  EXPECT_THAT(readAgain(std::to_string(::getpid())).files,
              Contains(AllOf(isLoopControl(), Field(&OpenFile::target, node))));
}

TEST_F(LiveProcesses, IgnoresFileWithNameOfDevice) {
  const Child child([](const std::function<void(bool)>& /*ready*/) {
    static FileDescriptor file;
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("none", "/dev", "tmpfs", 0, nullptr) == 0 &&
                         ::mkdir("/dev/vfio", 0755) == 0;
    file = FileDescriptor(::open("/dev/vfio/9", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    return mounted && file;
  });
  if (!child) {
    GTEST_SKIP() << "no permission to mount";
  }
  EXPECT_THAT(readAgain(child.id()).files,
              Not(Contains(Field(&OpenFile::target, StartsWith("/dev/vfio")))));
}

constexpr rlim_t reserve = 64;

rlim_t hardLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max - reserve : 0;
}

bool openMany(rlim_t count) {
  const rlimit limit{count + reserve, count + reserve};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return false;
  }
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (rlim_t made = 0; made < count; ++made) {
    if (::fcntl(null, F_DUPFD_CLOEXEC, 0) < 0) {
      return false;
    }
  }
  return true;
}

// Neither a refusal of all starts nor a place to hide. More descriptors than a list of names holds,
// if this test may raise RLIMIT_NOFILE; otherwise as many as it may have.
TEST_F(LiveProcesses, FindsDeviceInLargeTable) {
  const Child large([](const std::function<void(bool)>& /*ready*/) {
    static FileDescriptor file;
    const bool success = openMany(66000) || openMany(hardLimit());
    file = openLoopControl();
    return success && file;
  });
  ASSERT_TRUE(large);
  // As much time as it takes: this machine may be slow.
  const auto list = readProcesses(Root(), std::chrono::minutes(5));
  EXPECT_EQ(list.unread, "");
  EXPECT_THAT(find(list, large.id()).files, ElementsAre(isLoopControl()));
}

// The second round continues with the descriptor at which the first one stopped.
TEST_F(LiveProcesses, FindsEveryDescriptorAcrossRounds) {
  constexpr int firstLimit = 256;
  for (const int place : {firstLimit - 1, firstLimit, firstLimit + 1}) {
    const Child child([place](const std::function<void(bool)>& /*ready*/) {
      static FileDescriptor file;
      if (!openMany(2L * firstLimit)) {
        return false;
      }
      file = openLoopControl();
      return ::dup2(file.get(), place) == place && ::close(file.release()) == 0;
    });
    ASSERT_TRUE(child);
    EXPECT_THAT(readAgain(child.id()).files, Contains(isLoopControl())) << place;
  }
}

TEST_F(LiveProcesses, LargeTableHidesNoOtherProcess) {
  const Child large([](const std::function<void(bool)>& /*ready*/) { return openMany(5000); });
  const Child small([](const std::function<void(bool)>& /*ready*/) {
    static FileDescriptor file;
    file = openLoopControl();
    return static_cast<bool>(file);
  });
  ASSERT_TRUE(large && small);
  const auto list = readProcesses(Root(), std::chrono::milliseconds(0));
  EXPECT_THAT(list.unread, HasSubstr("(pid " + large.id() + ")"));
  EXPECT_THAT(list.unread, HasSubstr("too many descriptors"));
  EXPECT_THAT(find(list, small.id()).files, Contains(isLoopControl()));
}

TEST_F(LiveProcesses, FindsNetworkNamespaceOfThread) {
  withThread(
      [] {
        if (::unshare(CLONE_NEWNET) != 0) {
          GTEST_SKIP() << "no permission to create a network namespace";
        }
      },
      [](const std::string& thread) {
        if (testing::Test::IsSkipped()) {
          return;
        }
        const Root root;
        const std::string directory = std::to_string(::getpid()) + "/task/" + thread;
        const auto inode = readNamespaces(root, directory).network;
        const auto ours = readNamespaces(root, "self").network;
        ASSERT_TRUE(inode && ours && inode != ours);
        const auto list = readProcesses(root);
        const auto found =
            findNetworkNamespaces(list.processes, MountTable(root, list.processes), *ours);
        EXPECT_THAT(found, Contains(AllOf(Field(&NetworkNamespace::inode, *inode),
                                          Field(&NetworkNamespace::files,
                                                Contains("/proc/" + directory + "/ns/net")))));
      });
}

}  // namespace
}  // namespace vfpass::host
