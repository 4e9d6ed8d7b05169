#include "system/sysfs_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <system_error>

#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/pci_files.hpp"
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

std::optional<bool> SysfsReader::contains(const std::string& path,
                                          const std::string& wanted) const {
  constexpr std::size_t step = std::size_t{64} << 10U;
  const FileDescriptor file(::open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string window;  // the end of what was read, in case `wanted` continues in the next part
  std::string part(step, '\0');
  ssize_t count = -1;
  while (file && (count = ::read(file.get(), part.data(), step)) > 0) {
    window.append(part, 0, static_cast<std::size_t>(count));
    if (window.find(wanted) != std::string::npos) {
      return true;
    }
    window.erase(0, window.size() - std::min(window.size(), wanted.size()));
  }
  return count == 0 ? std::optional(false) : std::nullopt;
}

// read(2) of /dev/kmsg fails with EINVAL if the buffer is smaller than a record (devkmsg_read),
// with EPIPE if records were overwritten meanwhile, and with EAGAIN at the end.
bool SysfsReader::eachRecord(const std::string& path,
                             const std::function<void(std::string_view)>& use) const {
  constexpr std::size_t largestRecord = 8192;
  constexpr int most = 100000;
  const FileDescriptor file(::open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string record(largestRecord, '\0');
  for (int count = 0; file && count < most; ++count) {
    const ssize_t length = ::read(file.get(), record.data(), record.size());
    if (length > 0) {
      use(std::string_view(record).substr(0, static_cast<std::size_t>(length)));
    } else if (length == 0 || (errno != EPIPE && errno != EINTR)) {
      return length == 0 || errno == EAGAIN;
    }
  }
  return static_cast<bool>(file);
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

namespace {

constexpr std::size_t wholeSpace = 4096;

std::uint64_t hexNumber(std::string_view text) {
  return parseNumber(text.starts_with("0x") ? text.substr(2) : text, 16).value_or(0);
}

constexpr std::size_t firstBar = 0x10;  // in the configuration space

/// Whether the register exists, which its type bits tell even if it has no address: bit 0 for I/O,
/// bits 2 and 3 for 64 bits and prefetchable memory. Others look like an unused one then.
bool existsInConfig(const std::string& config, std::size_t number) {
  const auto low = configWord(config, firstBar + 4 * number);
  return low && (*low & 0xfU) != 0 && *low != 0xffff;  // all ones: the device does not answer
}

bool is64Bit(const std::string& config, std::size_t number) {
  constexpr unsigned typeMask = 0x7;  // memory, 64 bits
  const auto low = configWord(config, firstBar + 4 * number);
  return low && (*low & typeMask) == 0x4;
}

std::vector<PciBar> readBars(const std::string& resource, const std::string& config) {
  std::vector<PciBar> bars;
  const auto resources = readPciResources(resource);
  for (std::size_t number = 0; number < std::min(resources.size(), pciBars); ++number) {
    const auto& [start, bytes, flags] = resources[number];
    if (bytes != 0 || existsInConfig(config, number)) {
      bars.push_back({number, bytes, start != 0});
    }
    number += is64Bit(config, number) ? 1U : 0U;
  }
  return bars;
}

PciFunction readFunction(const SysfsReader& sysfs, const std::string& address) {
  const std::string folder = "/sys/bus/pci/devices/" + address;
  PciFunction function;
  function.address = address;
  function.deviceClass =
      static_cast<std::uint32_t>(hexNumber(sysfs.textOrEmpty(folder + "/class")));
  function.vendor = static_cast<std::uint32_t>(hexNumber(sysfs.textOrEmpty(folder + "/vendor")));
  function.device = static_cast<std::uint32_t>(hexNumber(sysfs.textOrEmpty(folder + "/device")));
  function.driver = sysfs.linkName(folder + "/driver");
  function.path = sysfs.resolved(folder);
  const std::string node = sysfs.textOrEmpty(folder + "/numa_node");
  std::from_chars(node.data(), node.data() + node.size(), function.numaNode);
  function.config = sysfs.bytes(folder + "/config", wholeSpace);
  function.bars = readBars(sysfs.textOrEmpty(folder + "/resource"), function.config);
  return function;
}

/// The parts of a path that are PCI functions or host bridges: `pci0000:00`, `0000:00:01.0`, ...
std::vector<std::string> treeOf(const PciFunction& function) {
  std::vector<std::string> parts;
  std::istringstream path(function.path);
  for (std::string part; std::getline(path, part, '/');) {
    if (part.find(':') != std::string::npos) {
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

std::vector<PciFunction> readPciFunctions(const SysfsReader& sysfs) {
  std::vector<PciFunction> functions;
  for (const std::string& address : sysfs.names("/sys/bus/pci/devices")) {
    functions.push_back(readFunction(sysfs, address));
  }
  return functions;
}

std::string pciDistance(const PciFunction& first, const PciFunction& second) {
  const auto one = treeOf(first);
  const auto other = treeOf(second);
  const auto [left, right] = std::ranges::mismatch(one, other);
  const auto common = left - one.begin();
  if (common <= 1) {
    const bool known = first.numaNode >= 0 && second.numaNode >= 0;
    return known && first.numaNode != second.numaNode ? "SYS" : "PHB";
  }
  // Below the common bridge: one of its ports, and the function.
  constexpr std::ptrdiff_t oneSwitch = 2;
  return one.end() - left <= oneSwitch && other.end() - right <= oneSwitch ? "PIX" : "PXB";
}

}  // namespace vfpass::probe
