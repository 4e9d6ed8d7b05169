#include "worker/worker.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "worker/world_socket.hpp"

// The programs' own main functions, renamed by the build.
int vfpass_main(int argc, char** argv);
int hook_main(int argc, char** argv);

namespace vfpass::crash {
namespace {

// Above every descriptor that vfpass opens: the kernel closes descriptors in ascending order when a
// process ends, so the world sees the end of the socket only after all locks are free.
constexpr int socketInWorker = 900;

int require(int result, const char* call) {
  if (result < 0) {
    throw std::system_error(errno, std::generic_category(), call);
  }
  return result;
}

int memoryFile(const std::string& text) {
  const int file = require(::memfd_create("vfpass-crash", MFD_CLOEXEC), "memfd_create");
  require(static_cast<int>(::write(file, text.data(), text.size())), "write");
  require(static_cast<int>(::lseek(file, 0, SEEK_SET)), "lseek");
  return file;
}

std::string readAll(int file) {
  std::string text;
  std::array<char, 65536> buffer{};
  ::lseek(file, 0, SEEK_SET);
  for (ssize_t length = 0; (length = ::read(file, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
  return text;
}

int callMain(const Program& program) {
  std::vector<std::string> arguments = program.arguments;
  std::vector<char*> pointers;
  for (auto& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  const auto main = arguments[0] == "hook" ? &hook_main : &vfpass_main;
  return main(static_cast<int>(arguments.size()), pointers.data());
}

[[noreturn]] void runWorker(const std::filesystem::path& root, const Program& program, int input,
                            int output, int socket) {
  ::setpgid(0, 0);
  if (::dup2(input, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      ::dup2(output, STDERR_FILENO) < 0 || ::dup2(socket, socketInWorker) < 0 ||
      ::close_range(3, socketInWorker - 1, 0) != 0 ||
      ::close_range(socketInWorker + 1, ~0U, 0) != 0 || ::chroot(root.c_str()) != 0 ||
      ::chdir("/") != 0) {
    ::_exit(96);
  }
  ::umask(S_IWGRP | S_IWOTH);
  worldSocket = socketInWorker;
  const int code = callMain(program);
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

Worker::Worker(const std::filesystem::path& root, const Program& program) {
  std::array<int, 2> ends{-1, -1};
  require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  const auto size = static_cast<int>(largestMessage);
  for (const int end : ends) {
    require(::setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size), "setsockopt");
  }
  sharedState().allocations = 0;
  sharedState().failingAllocation = program.failingAllocation;
  sharedState().opens = 0;
  sharedState().failingOpen = program.failingOpen;
  const int input = memoryFile(program.input);
  output_ = memoryFile("");
  std::cout.flush();
  std::fflush(nullptr);
  process_ = require(::fork(), "fork");
  if (process_ == 0) {
    runWorker(root, program, input, output_, ends[1]);
  }
  ::setpgid(process_, process_);
  ::close(ends[1]);
  ::close(input);
  socket_ = ends[0];
}

Worker::~Worker() {
  kill();
  ::close(socket_);
  ::close(output_);
}

Worker::Event Worker::wait(std::chrono::milliseconds timeout) {
  pollfd ready{socket_, POLLIN, 0};
  if (::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(0, timeout.count()))) == 0) {
    return Event::timeout;
  }
  static std::string buffer(largestMessage, '\0');
  const ssize_t length = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (length <= 0) {
    reap();
    return Event::ended;
  }
  request_ = unpack(buffer.data(), static_cast<std::size_t>(length));
  return Event::request;
}

void Worker::answer(const Message& reply) {
  const std::string bytes = pack(reply);
  // Fails if the worker has ended, which the next wait() reports.
  static_cast<void>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

void Worker::kill() {
  if (reaped_) {
    return;
  }
  ::kill(-process_, SIGKILL);
  // The hook's worker is not our child: the end of the socket shows that it has ended, too.
  while (wait(std::chrono::hours(1)) != Event::ended) {
  }
}

void Worker::reap() {
  if (!reaped_) {
    ::waitpid(process_, &status_, 0);
    reaped_ = true;
  }
}

void Worker::complete(Result& result) {
  result.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  result.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  result.output = readAll(output_);
  result.allocations = sharedState().allocations;
  result.opens = sharedState().opens;
}

}  // namespace vfpass::crash
