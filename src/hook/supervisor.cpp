#include "supervisor.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/events/journal_event.hpp"

namespace vfpass::hook {
namespace {

volatile std::sig_atomic_t exitCodeAtDeadline = 1;
volatile pid_t workerAtDeadline = 0;
std::string entryAtDeadline;  // written before the alarm is set

// Only async-signal-safe calls: the alarm can interrupt anything.
void onAlarm(int /*signal*/) {
  constexpr std::string_view message =
      "vfpass: deadline exceeded; run `vfpass recover` to complete or roll back the operation\n";
  if (workerAtDeadline > 0) {
    ::kill(workerAtDeadline, SIGKILL);  // takes effect when the kernel lets it go
  }
  events::sendEntry(entryAtDeadline);
  if (write(STDERR_FILENO, message.data(), message.size()) < 0) {
    _exit(exitCodeAtDeadline);
  }
  _exit(exitCodeAtDeadline);
}

void unblockAlarm() {
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
}

[[noreturn]] void runWorker(const FileDescriptor& messages, pid_t supervisor,
                            const std::function<int()>& work) {
  std::signal(SIGALRM, SIG_DFL);  // fork has cleared the alarm
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // As stdin, too, which is then not readable: the XML has been read.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::getppid() != supervisor || ::dup2(messages.get(), descriptor) < 0) {
      ::raise(SIGKILL);
    }
  }
  const int code = work();
  std::fflush(nullptr);
  _exit(code);
}

void passOn(const FileDescriptor& messages) {
  std::array<char, 4096> buffer{};
  ssize_t length = 0;
  while ((length = ::read(messages.get(), buffer.data(), buffer.size())) > 0 ||
         (length < 0 && errno == EINTR)) {
    if (length > 0) {
      static_cast<void>(!::write(STDERR_FILENO, buffer.data(), static_cast<std::size_t>(length)));
    }
  }
}

int resultOf(pid_t worker) {
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) {
    throw Error("the hook's worker was killed by signal " + std::to_string(WTERMSIG(status)),
                "run `vfpass recover`");
  }
  return WEXITSTATUS(status);
}

using Set = std::uint64_t;

constexpr Set setOf(int capability) { return Set{1} << static_cast<unsigned>(capability); }

constexpr Set inEffect =
    setOf(CAP_NET_ADMIN)           // rtnetlink, devlink and RDMA netlink
    | setOf(CAP_SYS_ADMIN)         // setns(2); PCI config space beyond the first 64 bytes
    | setOf(CAP_SYSLOG)            // /dev/kmsg; Linux 6.12 does not accept CAP_SYS_ADMIN for it
    | setOf(CAP_SYS_PTRACE)        // /proc/PID/fd and /proc/PID/ns of a QEMU of another user
    | setOf(CAP_DAC_READ_SEARCH);  // only their owner may read those directories
// With no_new_privs, execve(2) gives root's programs at most what is permitted here
// (cap_bprm_creds_from_file), and modprobe has to load modules.
constexpr Set permitted = inEffect | setOf(CAP_SYS_MODULE);

struct Failure {
  int first = 0;
  void note(bool failed) {
    if (failed && first == 0) {
      first = errno;
    }
  }
};

bool isHeld(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  const auto number = static_cast<unsigned>(capability);
  return ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[number / 32].effective >> (number % 32) & 1U) != 0;
}

// Before capset(2), because it needs CAP_SETPCAP.
void limitBoundingSet(Failure& failure) {
  if (!isHeld(CAP_SETPCAP)) {
    return;
  }
  // PR_CAPBSET_READ fails for the first number that the kernel does not know.
  for (int number = 0; ::prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; ++number) {
    if ((permitted & setOf(number)) == 0) {
      failure.note(::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0);
    }
  }
}

void limitOwnSets(Failure& failure) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) {
    failure.note(true);
    return;
  }
  for (unsigned half = 0; half < sets.size(); ++half) {
    const auto part = [&](Set set) { return static_cast<std::uint32_t>(set >> (32 * half)); };
    sets[half].permitted &= part(permitted);
    sets[half].effective &= part(inEffect);
    sets[half].inheritable = 0;
  }
  failure.note(::syscall(SYS_capset, &header, sets.data()) != 0);
}

}  // namespace

void startWatchdog(std::chrono::seconds timeout, int exitCode, const std::string& entry) {
  exitCodeAtDeadline = exitCode;
  entryAtDeadline = entry;
  struct sigaction action {};
  action.sa_handler = onAlarm;
  sigaction(SIGALRM, &action, nullptr);
  unblockAlarm();  // the daemon may have blocked signals around fork
  alarm(static_cast<unsigned>(timeout.count()));
}

int superviseWorker(const std::function<int()>& work) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error("cannot create a pipe: " + errnoText(errno));
  }
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const pid_t self = ::getpid();
  const pid_t worker = ::fork();
  if (worker < 0) {
    throw Error("cannot start a process: " + errnoText(errno), "free memory or processes");
  }
  if (worker == 0) {
    runWorker(writing, self, work);
  }
  workerAtDeadline = worker;
  writing = FileDescriptor();
  passOn(reading);
  return resultOf(worker);
}

int reducePrivileges() noexcept {
  Failure failure;
  failure.note(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0);
  failure.note(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0);
  failure.note(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0);
  limitBoundingSet(failure);
  limitOwnSets(failure);
  return failure.first;
}

struct SharedText::Memory {
  std::size_t size;
  std::array<char, std::size_t{32} << 20U> text;
};

SharedText::SharedText() {
  void* const memory = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error("cannot allocate shared memory: " + errnoText(errno), "free memory");
  }
  memory_ = static_cast<Memory*>(memory);  // of zeros
}

SharedText::~SharedText() { ::munmap(memory_, sizeof(Memory)); }

void SharedText::put(std::string_view text) {
  if (text.size() > memory_->text.size()) {
    throw Error("the domain XML is larger than 32 MiB",
                "remove large elements of other programs from its metadata");
  }
  std::ranges::copy(text, memory_->text.begin());
  memory_->size = text.size();
}

std::string_view SharedText::get() const { return {memory_->text.data(), memory_->size}; }

}  // namespace vfpass::hook
