#include "system/sysfs_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longestText = 4096;

std::optional<std::string> readUpTo(const fs::path& path, std::size_t limit) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    return std::nullopt;
  }
  std::string content(limit, '\0');
  std::size_t filled = 0;
  while (filled < limit) {
    const ssize_t count = ::read(file.get(), content.data() + filled, limit - filled);
    if (count < 0) {
      return std::nullopt;
    }
    if (count == 0) {
      break;
    }
    filled += static_cast<std::size_t>(count);
  }
  content.resize(filled);
  return content;
}

}  // namespace

fs::path SysfsReader::at(const std::string& path) const {
  return root_ / fs::path(path).relative_path();
}

std::optional<std::string> SysfsReader::text(const std::string& path) const {
  const auto content = readUpTo(at(path), longestText);
  return content ? std::optional(std::string(trim(*content))) : std::nullopt;
}

std::string SysfsReader::textOrEmpty(const std::string& path) const {
  return text(path).value_or("");
}

std::string SysfsReader::bytes(const std::string& path, std::size_t limit) const {
  return readUpTo(at(path), limit).value_or("");
}

std::vector<std::string> SysfsReader::names(const std::string& folder) const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(at(folder), error), end; !error && entry != end;
       entry.increment(error)) {
    found.push_back(entry->path().filename());
  }
  std::ranges::sort(found);
  return found;
}

std::string SysfsReader::linkName(const std::string& path) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(at(path), error);
  return error ? "" : target.filename().string();
}

std::string SysfsReader::resolved(const std::string& path) const {
  std::error_code error;
  const fs::path whole = fs::canonical(at(path), error);
  const fs::path root = fs::canonical(root_, error);
  return error ? "" : "/" + whole.lexically_relative(root).string();
}

bool SysfsReader::exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(at(path), error);
}

}  // namespace vfpass::probe
