#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "vfpass/error.hpp"

namespace vfpass::state {

/// A forked process that runs one function and reports through a pipe: `say` in the child, `hear`
/// in the parent (blocks; empty once the child has ended).
class Child {
 public:
  using Say = std::function<void(const std::string& line)>;

  explicit Child(const std::function<void(const Say&)>& body) {
    if (::pipe(pipe_) != 0 || (pid_ = ::fork()) < 0) {
      throw std::runtime_error("cannot start a child process");
    }
    if (pid_ == 0) {
      ::close(pipe_[0]);
      const int end = pipe_[1];
      runBody(body, [end](const std::string& line) {
        const std::string sent = line + "\n";
        static_cast<void>(!::write(end, sent.data(), sent.size()));
      });
    }
    ::close(pipe_[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      kill();
      wait();
    }
    ::close(pipe_[0]);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill(int signal = SIGKILL) const { ::kill(pid_, signal); }

  std::string hear() {
    std::string line;
    char character = 0;
    while (::read(pipe_[0], &character, 1) == 1 && character != '\n') {
      line += character;
    }
    return line;
  }

  /// The status of waitpid(2).
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  [[noreturn]] static void runBody(const std::function<void(const Say&)>& body, const Say& say) {
    int code = 0;
    try {
      body(say);
    } catch (const Error& error) {
      say("Error: " + std::string(error.what()) + " | " + error.remedy());
      code = 1;
    } catch (const std::exception& error) {
      say("exception: " + std::string(error.what()));
      code = 2;
    }
    ::_exit(code);
  }

  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
};

}  // namespace vfpass::state
