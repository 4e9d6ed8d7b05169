#include "child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds endsWithin{500};
constexpr milliseconds killedWithin{2000};
constexpr milliseconds pollInterval{20};
constexpr milliseconds messageFollows{500};
constexpr std::size_t keptMessages = 4096;
// ssh writes a few lines. Reading without end would only serve to use a processor.
constexpr std::size_t mostMessages = std::size_t{1} << 20U;
constexpr const char* locale = "LC_ALL=C";  // ssh's messages are quoted in ours

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error("cannot create a pipe: " + errnoText(errno));
    }
    reading = FileDescriptor(ends[0]);
    writing = FileDescriptor(ends[1]);
  }
  FileDescriptor reading;
  FileDescriptor writing;
};

std::vector<char*> pointersTo(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environmentWithLocale() {
  std::vector<std::string> variables{locale};
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("LC_ALL=")) {
      variables.emplace_back(*each);
    }
  }
  return variables;
}

// exec keeps ignored and blocked signals.
void resetSignals() {
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

struct Program {
  char** arguments;
  char** environment;
  int stream;
  int errors;
  int failure;  ///< gets errno if exec fails
  pid_t parent;
};

// Between fork and exec other threads' locks may be held, so nothing here allocates memory.
[[noreturn]] void runProgram(const Program& program) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  resetSignals();
  if (::getppid() == program.parent && ::dup2(program.stream, STDIN_FILENO) >= 0 &&
      ::dup2(program.stream, STDOUT_FILENO) >= 0 && ::dup2(program.errors, STDERR_FILENO) >= 0) {
    ::execvpe(program.arguments[0], program.arguments, program.environment);
  }
  const int error = errno;
  static_cast<void>(!::write(program.failure, &error, sizeof error));
  ::_exit(127);
}

// ssh prints banners and warnings before the reason.
std::string lastLine(const std::string& text) {
  std::string last;
  for (const std::string& line : splitLines(text)) {
    last = trim(line).empty() ? last : std::string(trim(line));
  }
  return last;
}

constexpr std::chrono::milliseconds checkpointInterval{100};
constexpr const char* ended = "it ended";

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> command, int stream)
    : program_(command.front()) {
  Pipe errors;
  Pipe failure;
  std::vector<std::string> variables = environmentWithLocale();
  const auto arguments = pointersTo(command);
  const auto environment = pointersTo(variables);
  const Program program{const_cast<char**>(arguments.data()),
                        const_cast<char**>(environment.data()),
                        stream,
                        errors.writing.get(),
                        failure.writing.get(),
                        ::getpid()};
  process_ = ::_Fork();  // library handlers must not run: other threads may hold their locks
  if (process_ == 0) {
    runProgram(program);
  }
  int error = process_ < 0 ? errno : 0;
  failure.writing.reset();
  errors.writing.reset();
  if (error != 0 || ::read(failure.reading.get(), &error, sizeof error) == sizeof error) {
    if (process_ > 0) {
      ::waitpid(process_, nullptr, 0);
    }
    throw Error("cannot start " + program_ + ": " + errnoText(error), "install " + program_);
  }
  errors_ = std::move(errors.reading);
  reader_ = std::thread([this] { readMessages(); });
}

// The group's ID stays reserved until the process is waited for, so the last kill reaches no other.
ChildProcess::~ChildProcess() {
  ::kill(-process_, SIGTERM);
  waitForExit({process_}, Deadline(endsWithin));
  ::kill(-process_, SIGKILL);
  waitForExit({process_}, Deadline(killedWithin));
  stop_ = true;
  reader_.join();
  ::waitpid(process_, nullptr,
            WNOHANG);  // a process that hangs in the kernel stays until it returns
}

void ChildProcess::readMessages() {
  pollfd wait{errors_.get(), POLLIN, 0};
  while (!stop_ && !closed_) {
    if (::poll(&wait, 1, static_cast<int>(pollInterval.count())) > 0) {
      readSome();
    }
  }
}

void ChildProcess::readSome() {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(errors_.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) {
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto length = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  messages_.append(buffer.data(), length);
  messages_.erase(0, messages_.size() - std::min(messages_.size(), keptMessages));
  written_ += length;
  closed_ = count <= 0 || written_ > mostMessages;
  if (written_ > mostMessages) {
    ::kill(-process_, SIGKILL);
  }
  changed_.notify_all();
}

// A banner that is there already is not the reason that follows it.
std::string ChildProcess::lastMessage() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, messageFollows, [this] { return closed_; });
  return written_ > mostMessages ? "it wrote more than 1 MiB of messages"
                                 : printable(lastLine(messages_));
}

LineProcess::LineProcess(const std::vector<std::string>& command, Checkpoint checkpoint)
    : program_(command.front()), checkpoint_(std::move(checkpoint)) {
  std::array<int, 2> stream{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream.data()) != 0) {
    throw Error("cannot create a socket pair: " + errnoText(errno));
  }
  stream_ = FileDescriptor(stream[0]);
  const FileDescriptor childStream(stream[1]);
  process_.emplace(command, childStream.get());
}

std::string LineProcess::ask(const std::string& line, std::chrono::milliseconds timeout,
                             std::size_t limit) {
  const Deadline deadline(timeout);
  send(line);
  while (true) {
    const auto end = received_.find('\n');
    if (end != std::string::npos && end <= limit) {
      std::string reply = received_.substr(0, end);
      received_.erase(0, end + 1);
      return reply;
    }
    if (received_.size() > limit) {
      fail("its reply is longer than " + std::to_string(limit) + " bytes");
    }
    if (deadline.over()) {
      fail("no reply within " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(timeout).count()) + " s");
    }
    checkpoint_();
    pollfd wait{stream_.get(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(std::min(deadline.left(), checkpointInterval).count()));
    if (wait.revents != 0 && !receive()) {
      fail(ended);
    }
  }
}

void LineProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  // Requests are short; the socket's buffer holds them even if the process does not read.
  if (::send(stream_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(text.size())) {
    fail(errno == EAGAIN ? "it does not read" : ended);
  }
}

bool LineProcess::receive() {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::recv(stream_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) {
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void LineProcess::fail(const std::string& what) {
  const std::string reason = process_->lastMessage();
  const bool explains = what == ended && !reason.empty();
  throw Error(program_ + ": " +
              (explains         ? reason
               : reason.empty() ? what
                                : what + "; its last message: " + reason));
}

}  // namespace vfpass::remote
