#include "nccl/nccl_log.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

/// `[0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>`, for sockets `[0]eth0:10.0.0.1<0>`.
void readDevices(std::string_view text, NcclChoice& choice) {
  std::istringstream words{std::string(text.substr(0, text.find(';')))};
  for (std::string word; words >> word;) {
    std::string_view rest = word;
    if (!take(rest, "[")) {
      continue;
    }
    const auto number = takeNumber(rest);
    if (!number || !take(rest, "]")) {
      continue;  // `[RO]`: relaxed ordering
    }
    const std::size_t slash = rest.rfind('/');
    addBounded(choice.devices,
               {*number, bounded(rest.substr(0, rest.find(':'))),
                slash == std::string_view::npos ? "" : bounded(rest.substr(slash + 1))},
               mostDevices, choice);
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

/// `NET/IB/0(3)/GDRDMA(PCI)/Shared`: network, device, the rank that sends for this one (PXN).
void readTransport(std::string_view text, NcclChoice::Connection& connection) {
  const std::string word = bounded(text.substr(0, text.find(' ')));
  connection.transport = word;
  if (!word.starts_with("NET/")) {
    return;
  }
  connection.gpuDirect = word.find("/GDRDMA") != std::string::npos;
  const std::size_t slash = word.find('/', std::string("NET/").size());
  if (slash != std::string::npos) {
    std::string_view rest = std::string_view(word).substr(slash + 1);
    const auto device = takeNumber(rest);
    connection.device = device ? static_cast<int>(*device) : -1;
    const auto proxy = take(rest, "(") ? takeNumber(rest) : std::nullopt;
    connection.proxy = proxy ? static_cast<int>(*proxy) : -1;
    connection.transport = word.substr(0, slash);
  }
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
  } else if (take(rest, "Using network ") || take(rest, "Assigned NET plugin ")) {
    choice.network = bounded(rest.substr(0, rest.find(' ')));
  } else if (take(rest, "Bootstrap : Using ") || take(rest, "Bootstrap: Using ")) {
    choice.bootstrap = bounded(rest.substr(0, rest.find('<')), 2 * longestWord);
  } else if (auto connection = readConnection(text)) {
    addConnection(*std::move(connection), choice);
  }
}

}  // namespace

NcclChoice readNcclLog(std::string_view log) {
  constexpr std::string_view info = "NCCL INFO ";
  constexpr std::string_view warning = "NCCL WARN ";
  NcclChoice choice;
  for (const std::string& line : splitLines(log.substr(0, longestLog))) {
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
