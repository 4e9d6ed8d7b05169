#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {

/// A process of an unprivileged user in user, mount and network namespaces of its own, with an
/// empty tmpfs at /tmp. It runs `attack` and then waits until this object ends.
class UserProcess {
 public:
  explicit UserProcess(const std::function<bool()>& attack) {
    std::array<int, 2> ready{};
    std::array<int, 2> end{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0 || ::pipe2(end.data(), O_CLOEXEC) != 0) {
      return;
    }
    const FileDescriptor reading(ready[0]);
    FileDescriptor writing(ready[1]);
    const FileDescriptor waiting(end[0]);
    end_ = FileDescriptor(end[1]);
    child_ = ::fork();
    if (child_ == 0) {
      end_.reset();
      char byte = enter() && attack() ? 'y' : 'n';
      static_cast<void>(::write(writing.get(), &byte, 1) + ::read(waiting.get(), &byte, 1));
      ::_exit(0);
    }
    writing.reset();
    char byte = 'n';
    works_ = ::read(reading.get(), &byte, 1) == 1 && byte == 'y';
  }
  UserProcess(const UserProcess&) = delete;
  UserProcess& operator=(const UserProcess&) = delete;
  ~UserProcess() {
    end_.reset();
    ::waitpid(child_, nullptr, 0);
  }

  /// False: the attack failed, or unprivileged users cannot create user namespaces here.
  [[nodiscard]] explicit operator bool() const { return works_; }
  [[nodiscard]] std::string id() const { return std::to_string(child_); }

 private:
  static bool write(const char* file, const std::string& text) {
    const FileDescriptor opened(::open(file, O_WRONLY | O_CLOEXEC));
    return opened &&
           ::write(opened.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  static bool enter() {
    constexpr unsigned nobody = 65534;
    const bool privileged = ::geteuid() == 0;
    if (privileged &&
        (::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0)) {
      return false;
    }
    ::prctl(PR_SET_DUMPABLE, 1);  // so that it may write its maps
    const std::string user = "0 " + std::to_string(::getuid()) + " 1";
    const std::string group = "0 " + std::to_string(::getgid()) + " 1";
    return ::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) == 0 &&
           write("/proc/self/setgroups", "deny") && write("/proc/self/uid_map", user) &&
           write("/proc/self/gid_map", group) && ::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0;
  }

  FileDescriptor end_;
  pid_t child_ = -1;
  bool works_ = false;
};

}  // namespace vfpass::host
