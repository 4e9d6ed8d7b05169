#include "vfpass/base/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass {
namespace {

[[noreturn]] void throwWrite(const std::filesystem::path& file, int error) {
  throw Error("cannot write " + printable(file.string()) + ": " + errnoText(error),
              "specify a file in a directory that exists and has free space");
}

}  // namespace

void writeOutputFile(const std::filesystem::path& file, const std::string& content) {
  std::string draft = file.native() + ".XXXXXX";
  const FileDescriptor target(::mkostemp(draft.data(), O_CLOEXEC));
  if (!target) {
    throwWrite(file, errno);
  }
  ScopeGuard removeDraft([&] { ::unlink(draft.c_str()); });
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t count = ::write(target.get(), content.data() + done, content.size() - done);
    if (count < 0 && errno != EINTR) {
      throwWrite(file, errno);
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  if (::fchmod(target.get(), 0644) != 0 || ::rename(draft.c_str(), file.c_str()) != 0) {
    throwWrite(file, errno);
  }
  removeDraft.disarm();
}

}  // namespace vfpass
