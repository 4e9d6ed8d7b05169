#include "vfpass/host/kernel_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

// read(2) returns one record and fails with EINVAL if the buffer is smaller (devkmsg_read);
// the kernel's own limit is CONSOLE_EXT_LOG_MAX in include/linux/printk.h.
constexpr std::size_t recordLimit = 8192;
// A driver that logs without end must not keep the caller here.
constexpr int maxRecords = 10000;
// More than the largest usual buffer has (log_buf_len=16M).
constexpr int maxRecordsOfBoot = 200000;
constexpr std::size_t maxMessages = 20000;

struct Record {
  std::string text;  // empty at the end, or if the log cannot be read
  bool gap = false;  // EPIPE: records before it were overwritten before they were read
};

Record readRecord(int file) {
  std::array<char, recordLimit> buffer{};
  ssize_t length = 0;
  bool gap = false;
  do {
    length = ::read(file, buffer.data(), buffer.size());
    gap = gap || (length < 0 && errno == EPIPE);
  } while (length < 0 && (errno == EPIPE || errno == EINTR));
  return {{buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))}, gap};
}

// The second number of `priority,sequence,time,flags;text`.
std::uint64_t sequenceOf(std::string_view record) {
  const std::size_t begin = std::min(record.find(','), record.size() - 1) + 1;
  return parseNumber(record.substr(begin, record.find(',', begin) - begin)).value_or(0);
}

// `text` of `mlx5_core 0000:01:00.0: text`, as dev_printk() writes it.
std::string textAbout(const std::string& name, std::string_view message) {
  const std::string mark = " " + name + ": ";
  const std::size_t start = message.find(mark);
  return start == std::string_view::npos ? std::string{}
                                         : std::string(message.substr(start + mark.size()));
}

}  // namespace

bool visitKernelLog(const Root& root, const std::function<bool(const KernelRecord&)>& visit) {
  const auto file = root.open("dev/kmsg", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (!file) {
    return false;
  }
  for (int count = 0; count < maxRecordsOfBoot; ++count) {
    const std::string record = readRecord(file.get()).text;
    if (record.empty()) {
      break;
    }
    const std::uint64_t sequence = sequenceOf(record);
    for (const std::string& line : splitLines(record)) {
      if (!visit({sequence, kernelText(line)})) {
        return true;
      }
    }
  }
  return true;
}

std::optional<std::vector<std::string>> readKernelMessages(
    const Root& root, const std::function<bool(std::string_view)>& isWanted) {
  std::vector<std::string> messages;
  const bool readable = visitKernelLog(root, [&](const KernelRecord& record) {
    if (!record.text.empty() && isWanted(record.text)) {
      messages.emplace_back(record.text);
    }
    return messages.size() < maxMessages;
  });
  return readable ? std::optional(messages) : std::nullopt;
}

KernelLog::KernelLog(const Root& root)
    : file_(root.open("dev/kmsg", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)),
      complete_(file_ && ::lseek(file_.get(), 0, SEEK_END) >= 0) {}

std::vector<std::string> KernelLog::messagesAbout(const PciAddress& function) {
  std::vector<std::string> messages;
  for (int count = 0; file_ && count < maxRecords; ++count) {
    const auto [record, gap] = readRecord(file_.get());
    complete_ = complete_ && !gap;
    if (record.empty()) {
      return messages;
    }
    for (const std::string& line : splitLines(record)) {
      if (const std::string text = textAbout(toString(function), kernelText(line)); !text.empty()) {
        messages.push_back(printable(text));
      }
    }
  }
  complete_ = false;
  return messages;
}

}  // namespace vfpass::host
