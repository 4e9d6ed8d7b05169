#include "nccl/nccl_log.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr std::size_t mostDevices = 64;
constexpr std::size_t mostConnections = 512;
constexpr std::size_t mostWarnings = 8;
constexpr std::size_t longestWord = 64;
constexpr std::size_t longestName = 256;  // of ports that NCCL uses as one device
constexpr std::size_t longestWarning = 256;
constexpr std::size_t longestLog = std::size_t{4} << 20U;

std::string bounded(std::string_view text, std::size_t longest = longestWord) {
  return std::string(trim(text.substr(0, longest)));
}

/// Removes `prefix` from the text and returns true if it begins with it.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

/// Removes and returns a number of at most five digits.
std::optional<unsigned> takeNumber(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = end <= 5 ? parseNumber(text.substr(0, end)) : std::nullopt;
  if (number) {
    text.remove_prefix(end);
  }
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

template <typename Element>
void addBounded(std::vector<Element>& list, Element element, std::size_t most, NcclChoice& choice) {
  if (list.size() < most) {
    list.push_back(std::move(element));
  } else {
    ++choice.leftOut;
  }
}

// The first name of a number is kept: NCCL repeats its devices.
void addDevice(NcclChoice::Device device, NcclChoice& choice) {
  const bool known = std::ranges::any_of(
      choice.devices, [&](const auto& each) { return each.number == device.number; });
  if (!known) {
    addBounded(choice.devices, std::move(device), mostDevices, choice);
  }
}

/// `[0]`, and what follows it. nullopt: another word, such as `[RO]` for relaxed ordering.
std::optional<unsigned> takeBracketed(std::string_view& text) {
  std::string_view rest = text;
  const auto number = take(rest, "[") ? takeNumber(rest) : std::nullopt;
  if (!number || !take(rest, "]")) {
    return std::nullopt;
  }
  text = rest;
  return number;
}

/// `mlx5_0:1/RoCE`, with the SHARP plugin `mlx5_0:1/IB/SHARP`, for sockets `eth0:10.0.0.1<0>`.
NcclChoice::Device deviceOf(unsigned number, std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view layer =
      slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  return {number, bounded(text.substr(0, text.find(':'))),
          bounded(layer.substr(0, layer.find_first_of("/,}")))};
}

/// `{[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}`, ports as one device (NCCL 2.21 to 2.23):
/// `mlx5_0+mlx5_1`, as newer versions name it.
NcclChoice::Device mergedDevice(unsigned number, std::string_view text) {
  NcclChoice::Device merged{number};
  std::istringstream words{std::string(text.substr(0, text.find('}')))};
  for (std::string word; words >> word;) {
    if (word.find(':') == std::string::npos) {
      continue;
    }
    const NcclChoice::Device part = deviceOf(number, word);
    merged.name += (merged.name.empty() ? "" : "+") + part.name;
    merged.layer = part.layer;
  }
  merged.name = bounded(merged.name, longestName);
  return merged;
}

/// `[0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>`, for sockets `[0]eth0:10.0.0.1<0>`,
/// of merged ports `[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}`.
void readDevices(std::string_view text, NcclChoice& choice) {
  text = text.substr(0, text.find(';'));
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[')) {
    text.remove_prefix(at);
    const auto number = takeBracketed(text);
    if (!number) {
      text.remove_prefix(1);
    } else if (take(text, "={")) {
      addDevice(mergedDevice(*number, text), choice);
      text.remove_prefix(std::min(text.find('}'), text.size()));
    } else {
      addDevice(deviceOf(*number, text.substr(0, text.find(' '))), choice);
    }
  }
}

/// `[2] name=mlx5_0+mlx5_1 speed=200000 ndevs=2` of NCCL 2.24 and newer, whose connections name
/// ports that it merged by this number.
void readVirtualDevice(std::string_view text, NcclChoice& choice) {
  const auto number = takeBracketed(text);
  if (number && take(text, " name=")) {
    addDevice({*number, bounded(text.substr(0, text.find(' ')), longestName)}, choice);
  }
}

/// `0[5000]`: rank, and the GPU's number or bus address.
std::optional<unsigned> takeRank(std::string_view& text) {
  const auto rank = takeNumber(text);
  const std::size_t end = text.find(']');
  if (!rank || !text.starts_with("[") || end == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(end + 1);
  return rank;
}

// Of the slash before the device's number. Names of plugins have blanks: `NET/AWS Libfabric/0`.
std::size_t slashBeforeNumber(std::string_view text, std::size_t from) {
  std::size_t slash = text.find('/', from);
  while (slash != std::string_view::npos &&
         (slash + 1 == text.size() || !std::isdigit(static_cast<unsigned char>(text[slash + 1])))) {
    slash = text.find('/', slash + 1);
  }
  return slash;
}

/// `NET/IB/0(3)/GDRDMA(PCI)/Shared`: network, device, the rank that sends for this one (PXN).
void readTransport(std::string_view text, NcclChoice::Connection& connection) {
  constexpr std::string_view net = "NET/";
  const std::size_t slash =
      text.starts_with(net) ? slashBeforeNumber(text, net.size()) : std::string_view::npos;
  if (slash == std::string_view::npos) {
    connection.transport = bounded(text.substr(0, text.find(' ')));
    return;
  }
  connection.transport = bounded(text.substr(0, slash));
  std::string_view rest = text.substr(slash + 1);
  rest = rest.substr(0, rest.find(' '));
  connection.gpuDirect = rest.find("/GDRDMA") != std::string_view::npos;
  const auto device = takeNumber(rest);
  connection.device = device ? static_cast<int>(*device) : -1;
  const auto proxy = take(rest, "(") ? takeNumber(rest) : std::nullopt;
  connection.proxy = proxy ? static_cast<int>(*proxy) : -1;
}

/// `Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA`; one line for each channel.
std::optional<NcclChoice::Connection> readConnection(std::string_view text) {
  const std::size_t colon = text.find(" : ");
  if (!text.starts_with("Channel ") || colon == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(colon + 3);
  NcclChoice::Connection connection;
  const auto from = takeRank(text);
  const bool arrow = from && take(text, " -> ");
  const auto to = arrow ? takeRank(text) : std::nullopt;
  if (!to) {
    return std::nullopt;
  }
  connection.from = *from;
  connection.to = *to;
  for (const char* direction : {"send", "receive"}) {
    if (take(text, std::string(" [") + direction + "]")) {
      connection.direction = direction;
    }
  }
  if (!take(text, " via ")) {
    return std::nullopt;
  }
  readTransport(text, connection);
  return connection;
}

void addConnection(NcclChoice::Connection connection, NcclChoice& choice) {
  for (NcclChoice::Connection& known : choice.connections) {
    connection.channels = known.channels;
    if (known == connection) {
      ++known.channels;
      return;
    }
  }
  connection.channels = 1;
  addBounded(choice.connections, connection, mostConnections, choice);
}

void readInfo(std::string_view text, NcclChoice& choice) {
  std::string_view rest = text;
  if (take(rest, "NET/IB : Using ") || take(rest, "NET/Socket : Using ")) {
    readDevices(rest, choice);
  } else if (take(rest, "NET/IB : Made virtual device ")) {
    readVirtualDevice(rest, choice);
  } else if (take(rest, "Using network ") || take(rest, "Assigned NET plugin ")) {
    choice.network = bounded(rest.substr(0, rest.find(" to comm")));
  } else if (take(rest, "Bootstrap : Using ") || take(rest, "Bootstrap: Using ")) {
    choice.bootstrap = bounded(rest.substr(0, rest.find('<')), 2 * longestWord);
  } else if (auto connection = readConnection(text)) {
    addConnection(*std::move(connection), choice);
  }
}

// Without a last line that was cut: `via NET/IB/0` may have had `/GDRDMA`.
std::string_view wholeLines(std::string_view log) {
  const std::size_t end = log.substr(0, longestLog).rfind('\n');
  return log.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

}  // namespace

NcclChoice readNcclLog(std::string_view log) {
  constexpr std::string_view info = "NCCL INFO ";
  constexpr std::string_view warning = "NCCL WARN ";
  NcclChoice choice;
  for (const std::string& line : splitLines(wholeLines(log))) {
    const std::string_view text = line;
    if (const std::size_t at = text.find(info); at != std::string_view::npos) {
      readInfo(text.substr(at + info.size()), choice);
    } else if (const std::size_t from = text.find(warning); from != std::string_view::npos) {
      addBounded(choice.warnings, bounded(text.substr(from + warning.size()), longestWarning),
                 mostWarnings, choice);
    }
  }
  return choice;
}

nlohmann::json toJson(const NcclChoice& choice) {
  nlohmann::json devices = nlohmann::json::array();
  for (const auto& each : choice.devices) {
    devices.push_back({{"number", each.number}, {"name", each.name}, {"layer", each.layer}});
  }
  nlohmann::json connections = nlohmann::json::array();
  for (const auto& each : choice.connections) {
    nlohmann::json one{{"from", each.from},
                       {"to", each.to},
                       {"direction", each.direction},
                       {"transport", each.transport},
                       {"gpu_direct", each.gpuDirect},
                       {"channels", each.channels}};
    one["device"] = each.device < 0 ? nlohmann::json(nullptr) : nlohmann::json(each.device);
    one["proxy"] = each.proxy < 0 ? nlohmann::json(nullptr) : nlohmann::json(each.proxy);
    connections.push_back(std::move(one));
  }
  return {{"network", choice.network},   {"bootstrap", choice.bootstrap},
          {"devices", devices},          {"connections", connections},
          {"warnings", choice.warnings}, {"left_out", choice.leftOut}};
}

NcclLog::NcclLog() : file_(::memfd_create("nccl-log", MFD_CLOEXEC)) {
  if (!file_) {
    throw Error("cannot create a file for the log of NCCL: " + errnoText(errno));
  }
  constexpr int replaceExisting = 1;
  const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
  ::setenv("NCCL_DEBUG", "INFO", replaceExisting);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,NET", replaceExisting);
  ::setenv("NCCL_DEBUG_FILE", path.c_str(), replaceExisting);
}

std::string NcclLog::text() const {
  std::string text;
  std::array<char, 65536> part{};
  while (text.size() < longestLog) {
    const ssize_t count =
        ::pread(file_.get(), part.data(), part.size(), static_cast<off_t>(text.size()));
    if (count <= 0) {
      break;
    }
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace vfpass::probe
