#include "sysfs/line_reading.hpp"

#include <unistd.h>

#include <cerrno>

#include "sysfs/directory_reading.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t chunk = std::size_t{64} << 10U;
// A line of mountinfo has two paths and the options, each of at most four pages when escaped.
constexpr std::size_t longestLine = std::size_t{1} << 20U;

// Visits the complete lines and removes them from the text; false: `visit` did.
bool takeLines(std::string& text, const std::function<bool(std::string_view line)>& visit) {
  std::size_t start = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    if (!visit(std::string_view(text).substr(start, end - start))) {
      return false;
    }
    start = end + 1;
  }
  text.erase(0, start);
  return text.size() <= longestLine;
}

}  // namespace

LinesRead eachLine(const Root& root, const std::string& path,
                   const std::function<bool(std::string_view line)>& visit) {
  const FileDescriptor file = root.open(path, textFlags);
  if (!file || !isRegular(file.get())) {
    return LinesRead::none;
  }
  std::string text;
  for (std::size_t offset = 0;;) {
    const std::size_t kept = text.size();
    text.resize(kept + chunk);
    const ssize_t count = ::read(file.get(), text.data() + kept, chunk);
    text.resize(kept + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count < 0 && errno != EINTR) {
      return offset == 0 ? LinesRead::none : LinesRead::some;
    }
    if (root.recording() != nullptr) {
      root.recording()->noteBytes(file.get(), offset, std::string_view(text).substr(kept));
    }
    if (count == 0) {
      return text.empty() || visit(text) ? LinesRead::all : LinesRead::some;
    }
    offset += text.size() - kept;
    if (!takeLines(text, visit)) {
      return LinesRead::some;
    }
  }
}

}  // namespace vfpass::host
