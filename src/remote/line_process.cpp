#include "line_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

constexpr std::chrono::milliseconds checkpointInterval{500};
constexpr std::chrono::milliseconds endsWithin{2000};
constexpr std::chrono::milliseconds pollInterval{10};
constexpr std::size_t longestMessage = 4096;
constexpr const char* locale = "LC_ALL=C";  // ssh's messages are quoted in ours

class SpawnOptions {
 public:
  SpawnOptions(int stream, int errors) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, stream, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, stream, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    ::posix_spawnattr_init(&attributes_);
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
  ~SpawnOptions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
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

// ssh prints banners and warnings before the reason.
std::string lastLine(const std::string& text) {
  std::string last;
  for (const std::string& line : splitLines(text)) {
    last = trim(line).empty() ? last : std::string(trim(line));
  }
  return last;
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command, Checkpoint checkpoint)
    : program_(command.front()), checkpoint_(std::move(checkpoint)) {
  std::array<int, 2> stream{};
  std::array<int, 2> errors{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream.data()) != 0) {
    throw Error("cannot create a socket pair: " + errnoText(errno));
  }
  stream_ = FileDescriptor(stream[0]);
  const FileDescriptor childStream(stream[1]);
  if (::pipe2(errors.data(), O_CLOEXEC) != 0) {
    throw Error("cannot create a pipe: " + errnoText(errno));
  }
  errors_ = FileDescriptor(errors[0]);
  const FileDescriptor childErrors(errors[1]);
  ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);

  std::vector<std::string> words = command;
  std::vector<std::string> variables = environmentWithLocale();
  const SpawnOptions options(childStream.get(), childErrors.get());
  const int error =
      ::posix_spawnp(&process_, words.front().c_str(), options.actions(), options.attributes(),
                     pointersTo(words).data(), pointersTo(variables).data());
  if (error != 0) {
    process_ = -1;
    throw Error("cannot start " + program_ + ": " + errnoText(error), "install " + program_);
  }
}

LineProcess::~LineProcess() {
  stream_.reset();
  if (process_ <= 0) {
    return;
  }
  ::kill(process_, SIGTERM);
  const Deadline deadline(endsWithin);
  while (::waitpid(process_, nullptr, WNOHANG) == 0) {
    if (deadline.over()) {
      ::kill(process_, SIGKILL);
    }
    std::this_thread::sleep_for(pollInterval);
  }
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
      fail("no reply within " + std::to_string(timeout.count() / 1000) + " s");
    }
    checkpoint_();
    std::array<pollfd, 2> waits{{{stream_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}}};
    const int wait = static_cast<int>(std::min(deadline.left(), checkpointInterval).count());
    ::poll(waits.data(), errors_ ? waits.size() : 1, wait);
    readErrors();
    if (waits[0].revents != 0 && !receive()) {
      fail("it ended");
    }
  }
}

void LineProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  // Requests are short; the socket's buffer holds them even if the process does not read.
  if (::send(stream_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(text.size())) {
    readErrors();
    fail("it ended");
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

void LineProcess::readErrors() {
  std::array<char, 1024> buffer{};
  ssize_t count = 0;
  while (errors_ && (count = ::read(errors_.get(), buffer.data(), buffer.size())) != 0) {
    if (count < 0) {
      return;
    }
    const auto room = longestMessage - message_.size();
    message_.append(buffer.data(), std::min(room, static_cast<std::size_t>(count)));
  }
  errors_.reset();
}

void LineProcess::fail(const std::string& what) {
  // The message may follow the end of the output.
  pollfd wait{errors_.get(), POLLIN, 0};
  if (errors_ && message_.empty()) {
    ::poll(&wait, 1, static_cast<int>(checkpointInterval.count()));
    readErrors();
  }
  const std::string reason = lastLine(message_);
  throw Error(program_ + ": " + (reason.empty() ? what : printable(reason)));
}

}  // namespace vfpass::remote
