#include "vfpass/install/hook_files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/write_file.hpp"
#include "vfpass/error.hpp"

namespace vfpass::install {
namespace {

namespace fs = std::filesystem;

constexpr const char* programName = "vfpass-qemu-hook";

std::string shown(const fs::path& path) { return printable(path.native()); }

[[noreturn]] void refuse(const fs::path& program, const std::string& reason) {
  throw Error("hook program " + shown(program) + ": " + reason +
                  "; libvirtd would kill every running VM at its next start",
              "repair or reinstall it, then run `vfpass hook install` again", ExitCode::refused);
}

// Returns the pid. posix_spawn also reports errors of execve.
pid_t startProgram(const fs::path& program) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  }
  std::string name = program.native();
  std::array<char*, 2> arguments{name.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, name.c_str(), &files, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    refuse(program, "cannot be started: " + errnoText(error));
  }
  return pid;
}

// False if the process had to be killed.
bool waitForEnd(pid_t pid, int& status) {
  const bool ended = waitForExit({pid}, Deadline(deadlines::hookTrial));
  if (!ended) {
    ::kill(pid, SIGKILL);
  }
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

/// Runs the program without arguments and input, as root and with an empty environment. Throws
/// (refused) if it cannot be loaded, is killed by a signal, or does not exit within seconds. Its
/// exit status does not matter otherwise: a hook without arguments has nothing to do.
void requireRuns(const fs::path& program) {
  int status = 0;
  if (!waitForEnd(startProgram(program), status)) {
    refuse(program, "does not exit within " + std::to_string(deadlines::hookTrial.count() / 1000) +
                        " seconds");
  }
  if (WIFSIGNALED(status)) {
    refuse(program, "killed by signal " + std::to_string(WTERMSIG(status)));
  }
  // The dynamic loader exits with 127 if a library is missing.
  if (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127) {
    refuse(program, "cannot be loaded: exit status " + std::to_string(WEXITSTATUS(status)));
  }
}

[[noreturn]] void throwErrno(const std::string& what, int error, const std::string& remedy = {}) {
  throw Error(what + ": " + errnoText(error), remedy);
}

bool isExecutableFile(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         (status.st_mode & 0111U) != 0;
}

// Throws if something else has its name, such as a symbolic link to nothing: mkdir() follows none.
bool isMissing(const fs::path& folder) {
  std::error_code error;
  const auto status = fs::symlink_status(folder, error);
  if (status.type() == fs::file_type::not_found) {
    return true;
  }
  if (!fs::is_directory(folder, error)) {
    throw Error("cannot create directory " + shown(folder) + ": it is " +
                    (fs::is_symlink(status) ? "a symbolic link to no directory" : "no directory"),
                "remove or rename it, then run `vfpass hook install` again");
  }
  return false;
}

void makeDirectory(const fs::path& folder, const std::string& remedy,
                   std::vector<std::string>& actions) {
  if (!isMissing(folder)) {
    return;
  }
  if (::mkdir(folder.c_str(), 0755) == 0) {
    ::chmod(folder.c_str(), 0755);  // independent of the umask, so that libvirtd can read it
    actions.push_back("created " + shown(folder));
    return;
  }
  const int error = errno;
  if (error != EEXIST || isMissing(folder)) {
    throwErrno("cannot create directory " + shown(folder), error, remedy);
  }
}

// The file at the link's path: none, our link, or something else.
enum class Occupant { none, ours, foreign };

Occupant occupantOf(const HookPlaces& places) {
  std::error_code error;
  const auto status = fs::symlink_status(places.link(), error);
  if (status.type() == fs::file_type::not_found) {
    return Occupant::none;
  }
  const fs::path target = fs::read_symlink(places.link(), error);
  const bool ours = !error && (target == places.binary || target.filename() == programName);
  return ours ? Occupant::ours : Occupant::foreign;
}

[[noreturn]] void throwForeign(const HookPlaces& places) {
  throw Error(shown(places.link()) + ": not a vfpass link, left unchanged",
              "rename that hook, then try again", ExitCode::refused);
}

// Created outside qemu.d and then renamed, because libvirt runs every program in that directory.
void placeLink(const HookPlaces& places) {
  const fs::path draft = places.hooksDirectory / (".vfpass-link-" + std::to_string(::getpid()));
  ::unlink(draft.c_str());
  if (::symlink(places.binary.c_str(), draft.c_str()) != 0) {
    throwErrno("cannot create a link in " + shown(places.hooksDirectory), errno);
  }
  if (::rename(draft.c_str(), places.link().c_str()) != 0) {
    const int error = errno;
    ::unlink(draft.c_str());
    throwErrno("cannot move the link to " + shown(places.folder()), error);
  }
}

}  // namespace

HookPlaces placesFrom(const fs::path& hooksDirectory, const fs::path& binary) {
  const fs::path folder = fs::absolute(hooksDirectory).lexically_normal();
  return {folder.has_filename() ? folder : folder.parent_path(), fs::absolute(binary)};
}

bool anyHookPresent(const HookPlaces& places) {
  if (isExecutableFile(places.single())) {
    return true;
  }
  std::error_code error;
  const fs::directory_iterator entries(places.folder(), error);
  return !error && std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return isExecutableFile(entry.path());
  });
}

void requireLoadable(const fs::path& binary) {
  struct stat status {};
  const std::string remedy =
      "install " + std::string(programName) + " first, or specify the program with --hook-binary";
  if (::stat(binary.c_str(), &status) != 0) {
    throwErrno("cannot use hook program " + shown(binary), errno, remedy);
  }
  if (!S_ISREG(status.st_mode) || (status.st_mode & 0111U) == 0) {
    throw Error("hook program " + shown(binary) + ": not an executable file", remedy);
  }
  if ((status.st_mode & 022U) != 0 || (status.st_uid != 0 && status.st_uid != ::geteuid())) {
    throw Error("hook program " + shown(binary) + ": writable by other users, but libvirt runs " +
                    "it as root",
                "change its owner to root and its mode to 0755", ExitCode::refused);
  }
  requireRuns(binary);
}

namespace {

constexpr const char* hooksDirectoryRemedy =
    "install libvirt first, or specify its hooks directory with --hooks-dir";

// Throws if something else is in the link's place.
bool isLinked(const HookPlaces& places) {
  const Occupant occupant = occupantOf(places);
  if (occupant == Occupant::foreign) {
    throwForeign(places);
  }
  std::error_code error;
  return occupant == Occupant::ours && fs::read_symlink(places.link(), error) == places.binary;
}

std::string linkText(const HookPlaces& places) {
  return shown(places.link()) + " to " + shown(places.binary);
}

}  // namespace

std::vector<std::string> linkHook(const HookPlaces& places) {
  std::vector<std::string> actions;
  makeDirectory(places.hooksDirectory, hooksDirectoryRemedy, actions);
  makeDirectory(places.folder(), {}, actions);
  if (!isLinked(places)) {
    placeLink(places);
    actions.push_back("linked " + linkText(places));
  }
  return actions;
}

std::vector<std::string> plannedLinks(const HookPlaces& places) {
  std::vector<std::string> actions;
  const fs::path parent = places.hooksDirectory.parent_path();
  if (const FileDescriptor found(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      !found) {
    throwErrno("cannot create directory " + shown(places.hooksDirectory), errno,
               hooksDirectoryRemedy);
  }
  for (const fs::path& folder : {places.hooksDirectory, places.folder()}) {
    if (isMissing(folder)) {
      actions.push_back("would create " + shown(folder));
    }
  }
  if (!isLinked(places)) {
    actions.push_back("would link " + linkText(places));
  }
  return actions;
}

PlannedReload plannedReload(const HookPlaces& places, bool noReload) {
  if (!places.areLibvirts()) {
    return {"would reload no daemon: libvirt does not use that directory"};
  }
  if (noReload) {
    return {"would reload no daemon: libvirt calls the hook only after a reload"};
  }
  return {"would reload the libvirt daemon if it runs, so that it looks for hooks again", true};
}

std::vector<std::string> unlinkHook(const HookPlaces& places) {
  const Occupant occupant = occupantOf(places);
  if (occupant == Occupant::foreign) {
    throwForeign(places);
  }
  if (occupant == Occupant::none) {
    return {};
  }
  if (::unlink(places.link().c_str()) != 0 && errno != ENOENT) {
    throwErrno("cannot remove " + shown(places.link()), errno);
  }
  return {"removed " + shown(places.link())};
}

namespace {

[[noreturn]] void throwCopy(const fs::path& target, int error) {
  throw Error("cannot install " + printable(target.native()) + ": " + errnoText(error),
              error == EROFS ? "install the package instead: the file system is read-only" : "");
}

void writeBlock(int descriptor, const char* bytes, std::size_t length, const fs::path& target) {
  while (length > 0) {
    const ssize_t count = ::write(descriptor, bytes, length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      throwCopy(target, errno);
    }
    bytes += count;
    length -= static_cast<std::size_t>(count);
  }
}

void copyBytes(int from, int to, const fs::path& target) {
  std::array<char, 65536> block{};
  while (true) {
    const ssize_t count = ::read(from, block.data(), block.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      throwCopy(target, errno);
    }
    if (count == 0) {
      return;
    }
    writeBlock(to, block.data(), static_cast<std::size_t>(count), target);
  }
}

}  // namespace

void copyProgram(const fs::path& source, const fs::path& target) {
  const FileDescriptor from(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) {
    throwCopy(target, errno);
  }
  std::string draft = target.native() + ".XXXXXX";
  const FileDescriptor to(::mkostemp(draft.data(), O_CLOEXEC));
  if (!to) {
    throwCopy(target, errno);
  }
  ScopeGuard removeDraft([&] { ::unlink(draft.c_str()); });
  copyBytes(from.get(), to.get(), target);
  if (::fchmod(to.get(), 0755) != 0 || ::fsync(to.get()) != 0 ||
      ::rename(draft.c_str(), target.c_str()) != 0) {
    throwCopy(target, errno);
  }
  removeDraft.disarm();
  syncNames(target.parent_path());
}

namespace {

namespace fs = std::filesystem;

std::string firstLine(const fs::path& file) {
  constexpr std::size_t longest = 64;  // a pid or a task's name
  try {
    const std::string text = readBoundedFile(file, longest);
    return std::string(trim(text.substr(0, text.find('\n'))));
  } catch (const ReadRefused&) {
    return {};
  }
}

std::optional<pid_t> pidIn(const fs::path& file) {
  const auto number = parseNumber(firstLine(file));
  if (!number || *number == 0 || *number > std::numeric_limits<pid_t>::max()) {
    return std::nullopt;
  }
  return static_cast<pid_t>(*number);
}

// The pidfd is opened before the name is checked, so that the signal cannot reach another process
// that reuses the pid.
bool reload(const std::string& daemon, pid_t pid, const fs::path& procDirectory) {
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || firstLine(procDirectory / std::to_string(pid) / "comm") != daemon) {
    return false;
  }
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGHUP, nullptr, 0) != 0) {
    throw Error(
        "cannot reload " + daemon + " (pid " + std::to_string(pid) + "): " + errnoText(errno),
        "run `systemctl reload " + daemon + "`; it does not call the hook before that");
  }
  return true;
}

}  // namespace

std::vector<std::string> reloadLibvirt(const fs::path& runDirectory, const fs::path& procDirectory,
                                       std::vector<std::string>* reloaded) {
  std::vector<std::string> actions;
  for (const std::string daemon : {"virtqemud", "libvirtd"}) {
    const auto pid = pidIn(runDirectory / (daemon + ".pid"));
    if (pid && reload(daemon, *pid, procDirectory)) {
      actions.push_back("reloaded " + daemon + " (pid " + std::to_string(*pid) +
                        "), so that it looks for hooks again");
      if (reloaded != nullptr) {
        reloaded->push_back(daemon);
      }
    }
  }
  if (actions.empty()) {
    actions.emplace_back("no libvirt daemon is running; it finds the hook when it starts");
  }
  return actions;
}

}  // namespace vfpass::install
