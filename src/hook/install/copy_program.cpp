#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/install/hook_files.hpp"

namespace vfpass::install {
namespace {

namespace fs = std::filesystem;

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

// Without fsync(2) of the directory a power failure could lose the rename.
void syncFolder(const fs::path& folder) {
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) {
    ::fsync(directory.get());
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
  syncFolder(target.parent_path());
}

}  // namespace vfpass::install
