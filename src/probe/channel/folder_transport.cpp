#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include "channel/channel.hpp"
#include "system/sysfs_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

namespace fs = std::filesystem;

Error folderError(const fs::path& path, int error) {
  return Error("cannot write " + path.string() + ": " + errnoText(error),
               "use a directory of this user with free space");
}

void writeWhole(const fs::path& path, const std::string& text) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw folderError(path, errno);
  }
}

class FolderTransport final : public Transport {
 public:
  explicit FolderTransport(fs::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    if (!fs::is_directory(folder_, error)) {
      throw Error(folder_.string() + ": no such directory", "create it", ExitCode::badInput);
    }
    // The other side's first line may arrive before this side starts, but only this side writes
    // out.N.
    if (fs::exists(folder_ / "out.1", error)) {
      throw Error(folder_.string() + " holds files of another exchange", "use an empty directory",
                  ExitCode::badInput);
    }
  }
  ~FolderTransport() override {
    try {
      put("");
    } catch (const Error&) {
      // The other side will run into its deadline.
    }
  }

  void send(const std::string& line, const Deadline& /*deadline*/) override { put(line + "\n"); }

  std::optional<std::string> receive(const Deadline& deadline) override {
    const std::string name = "in." + std::to_string(received_ + 1);
    const SysfsReader reader(folder_);
    // Not every file system reports new files, so poll, at first often, then less often.
    constexpr int longestPause = 100;
    for (int pause = 1; !reader.exists(name); pause = std::min(pause * 2, longestPause)) {
      requireTimeLeft(deadline, "waiting for " + (folder_ / name).string());
      ::poll(nullptr, 0, pause);
    }
    ++received_;
    const std::string text = reader.bytes(name, largestMessage + 1);
    return text.empty() ? std::nullopt : std::optional(std::string(trim(text)));
  }

 private:
  void put(const std::string& text) {
    const fs::path unfinished = folder_ / "unfinished";
    const fs::path whole = folder_ / ("out." + std::to_string(sent_ + 1));
    writeWhole(unfinished, text);
    if (::rename(unfinished.c_str(), whole.c_str()) != 0) {
      throw folderError(whole, errno);
    }
    ++sent_;
  }

  fs::path folder_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace

std::unique_ptr<Transport> folderTransport(const fs::path& folder) {
  return std::make_unique<FolderTransport>(folder);
}

}  // namespace vfpass::probe
