#include "vfpass/state/seal_key_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "state_folder.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::state {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t secretSize = 32;

fs::path keyFile(const SealKeyPlaces& places) { return places.configDirectory / "seal.key"; }

std::string shown(const fs::path& path) { return printable(path.string()); }

std::string shellWord(const fs::path& path) { return printable(shellQuoted(path.string())); }

Error badKey(const fs::path& file, const std::string& reason, const std::string& remedy) {
  return Error("seal key " + shown(file) + ": " + reason, remedy, ExitCode::badInput);
}

// Empty if there is more, which is neither a key nor a machine ID.
std::string readText(int descriptor, const fs::path& file, std::size_t limit) {
  try {
    return readBounded(descriptor, limit);
  } catch (const ReadRefused& refused) {
    if (refused.error() != EFBIG) {
      throw Error("cannot read " + shown(file) + ": " + refused.what());
    }
    return {};
  }
}

void requireKeyOwner(const struct stat& status, const fs::path& path) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    throw badKey(path, "owned by user id " + std::to_string(status.st_uid) + ", not by root",
                 "if no other user can have read it, run `chown root " + shellWord(path) + "`");
  }
}

// Whoever can write to the directory can replace the key.
void requireKeyFolder(const fs::path& folder) {
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) {
    throw systemFailure("cannot stat " + shown(folder), errno, folder);
  }
  requireKeyOwner(status, folder);
  const bool groupWrites = (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0;
  if (groupWrites || (status.st_mode & S_IWOTH) != 0) {
    throw badKey(folder / "seal.key", "other users can write to its directory",
                 "run `chmod go-w " + shellWord(folder) + "`");
  }
}

void requireKeyFile(int descriptor, const fs::path& file) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) {
    throw systemFailure("cannot stat " + shown(file), errno, file.parent_path());
  }
  if (!S_ISREG(status.st_mode)) {
    throw badKey(file, "not a regular file", "remove it");
  }
  requireKeyOwner(status, file);
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw badKey(
        file, "other users can read or write it",
        "remove it, then run `vfpass attach` for each attached VM; if no other user can have "
        "read it, `chmod 0600 " +
            shellWord(file) + "` is enough");
  }
}

// Empty if there is no key.
std::vector<std::uint8_t> readSecret(const fs::path& file) {
  // O_NONBLOCK: open(2) of a FIFO would block until somebody writes to it.
  const FileDescriptor opened(
      ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!opened && errno == ENOENT) {
    return {};
  }
  if (!opened && errno == ELOOP) {  // O_NOFOLLOW on a link
    throw badKey(file, "a symbolic link", "remove it");
  }
  if (!opened) {
    throw Error("cannot open seal key " + shown(file) + ": " + errnoText(errno), "run as root");
  }
  requireKeyFolder(file.parent_path());
  requireKeyFile(opened.get(), file);
  const std::string text = readText(opened.get(), file, 3 * secretSize);
  std::vector<std::uint8_t> secret(secretSize);
  if (!parseHexBytes(trim(text), 0, secret)) {
    throw badKey(file, "not 64 hexadecimal digits",
                 "restore it from a backup, or remove it and run `vfpass attach` for each "
                 "attached VM");
  }
  return secret;
}

std::string readHostId(const fs::path& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened && errno != ENOENT) {  // such as without a free descriptor
    throw Error("cannot open " + shown(file) + ": " + errnoText(errno), "run as root");
  }
  const std::string text = opened ? readText(opened.get(), file, 128) : "";
  std::string id = toLower(trim(text));
  std::array<std::uint8_t, 16> bytes{};
  if (!parseHexBytes(id, 0, bytes)) {  // `uninitialized` in an image before its first boot
    throw Error(shown(file) + ": no valid machine ID", "run `systemd-machine-id-setup`");
  }
  return id;
}

void makeConfigDirectory(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw systemFailure("cannot create directory " + shown(folder), error.value(),
                        folder.parent_path());
  }
}

std::string newSecret() {
  std::array<std::uint8_t, secretSize> bytes{};
  // getrandom(2) returns up to 256 bytes completely or not at all.
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) {
      throw Error("cannot create a seal key: getrandom: " + errnoText(errno));
    }
  }
  return hexBytes(bytes, "") + "\n";
}

// The key file appears complete or not at all, and never replaces an existing one.
void createKey(const fs::path& file) {
  const fs::path fresh = file.string() + ".new-" + std::to_string(::getpid());
  std::error_code ignored;
  fs::remove(fresh, ignored);  // left by a killed process with the same PID
  const ScopeGuard removeFresh([&] { fs::remove(fresh, ignored); });
  writePrivateFile(fresh, newSecret());
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) != 0 &&
      errno != EEXIST) {
    throw systemFailure("cannot create " + shown(file), errno, file.parent_path());
  }
  syncFolder(file.parent_path());
}

}  // namespace

SealKey readSealKey(const SealKeyPlaces& places) {
  auto secret = readSecret(keyFile(places));
  return secret.empty() ? SealKey{} : SealKey{std::move(secret), readHostId(places.machineId)};
}

SealKey makeSealKey(const SealKeyPlaces& places) {
  SealKey key = readSealKey(places);
  if (key.secret.empty()) {
    readHostId(places.machineId);  // fails before anything is created
    makeConfigDirectory(places.configDirectory);
    requireKeyFolder(places.configDirectory);
    createKey(keyFile(places));
    key = readSealKey(places);
  }
  return key;
}

}  // namespace vfpass::state
