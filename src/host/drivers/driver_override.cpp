#include "drivers/driver_override.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "helper/guarded_child.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

using Overrides = std::vector<std::optional<std::string>>;

constexpr std::size_t recordSize = 256;

// Writes one record of fixed size for each path, in order, so that the parent can count them. The
// first byte is the result of the read. Runs in the child: must not allocate.
void readRecords(int pipe, int base, const std::vector<std::string>& paths, std::size_t first) {
  for (std::size_t i = first; i < paths.size(); ++i) {
    std::array<char, recordSize> record{};
    const int file = ::openat(base, paths[i].c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t count = file < 0 ? -1 : ::read(file, record.data() + 1, record.size() - 2);
    if (file >= 0) {
      ::close(file);
    }
    record[0] = count < 0 ? 'n' : 'y';
    writeAll(pipe, record.data(), record.size());
  }
}

void takeRecords(const std::string& bytes, std::size_t first, Overrides& overrides) {
  for (std::size_t i = 0; (i + 1) * recordSize <= bytes.size(); ++i) {
    const char* record = bytes.data() + i * recordSize;
    if (record[0] == 'y') {
      overrides[first + i] = overrideIn(record + 1);  // always zero-terminated
    }
  }
}

Overrides readGuarded(const Root& root, const std::vector<std::string>& paths,
                      std::chrono::milliseconds timeout) {
  Overrides overrides(paths.size());
  const FileDescriptor base = root.open(".", O_PATH | O_DIRECTORY);
  const Deadline total(3 * timeout);
  std::size_t next = 0;
  // A device that hangs is skipped; the next child continues after it.
  while (next < paths.size() && !total.over()) {
    const auto reply = runGuarded(
        timeout, base.get(), [&, next](int pipe) { readRecords(pipe, base.get(), paths, next); });
    takeRecords(reply.bytes, next, overrides);
    next += reply.bytes.size() / recordSize + 1;
  }
  return overrides;
}

// The child's reads are not recorded automatically.
void noteOverrides(const Root& root, const std::vector<PciAddress>& functions,
                   const Overrides& overrides) {
  for (std::size_t i = 0; root.recording() != nullptr && i < functions.size(); ++i) {
    const FileDescriptor directory = root.open(functionPath(functions[i]), O_PATH | O_DIRECTORY);
    if (directory && overrides[i]) {
      root.recording()->noteText(directory.get(), "driver_override",
                                 (overrides[i]->empty() ? "(null)" : *overrides[i]) + "\n");
    }
  }
}

}  // namespace

bool hasDriverOverride(const Root& root, const PciAddress& function) {
  return root.isLive() && root.exists(functionPath(function) + "/driver_override");
}

// Without an override the kernel prints a null pointer: "(null)".
std::string overrideIn(std::string_view text) {
  const auto value = trim(text);
  return value == "(null)" ? std::string{} : std::string(value);
}

Overrides readDriverOverrides(const Root& root, const std::vector<PciAddress>& functions,
                              std::chrono::milliseconds deadline) {
  std::vector<std::string> paths;
  for (const PciAddress& function : functions) {
    paths.push_back(functionPath(function) + "/driver_override");
  }
  if (root.isLive()) {
    auto found = readGuarded(root, paths, deadline);
    noteOverrides(root, functions, found);
    return found;
  }
  Overrides overrides;
  for (const std::string& path : paths) {
    const auto text = root.readText(path);
    overrides.push_back(text ? std::optional(overrideIn(*text)) : std::nullopt);
  }
  return overrides;
}

}  // namespace vfpass::host
