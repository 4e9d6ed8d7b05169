// The log of NCCL in a guest, which verify judges: plugins and other programs' names are in it.
// covers: src/probe/nccl/nccl_log.cpp -NcclLog -text
#include "nccl/nccl_log.hpp"

#include <nlohmann/json.hpp>

#include "fuzz/target.hpp"

namespace vfpass::fuzz {
namespace {

constexpr std::size_t longestWord = 64;
constexpr std::size_t longestName = 256;  // of ports that NCCL uses as one device

bool isBounded(const std::string& text) { return text.size() <= longestWord; }

void checkConnection(const probe::NcclChoice::Connection& connection) {
  require(isBounded(connection.transport), "a transport is a word");
  require(connection.direction.empty() || connection.direction == "send" ||
              connection.direction == "receive",
          "a connection has one of two directions");
  require(connection.channels > 0, "a connection has channels");
  require(connection.from <= 99999 && connection.to <= 99999, "a rank is a small number");
  require(connection.device < 0 || connection.transport.starts_with("NET/"),
          "only a network has devices");
}

}  // namespace

void runTarget(std::string_view input) {
  const probe::NcclChoice choice = probe::readNcclLog(input);
  require(choice.devices.size() <= 64 && choice.connections.size() <= 512 &&
              choice.warnings.size() <= 8,
          "each list is limited");
  require(isBounded(choice.network) && choice.bootstrap.size() <= 2 * longestWord,
          "each text is limited");
  for (const auto& device : choice.devices) {
    require(device.name.size() <= longestName && isBounded(device.layer),
            "a device has short names");
  }
  for (const auto& warning : choice.warnings) {
    require(warning.size() <= 256, "a warning is limited");
  }
  for (const auto& connection : choice.connections) {
    checkConnection(connection);
  }
  const auto document = probe::toJson(choice);
  require(document.at("connections").size() == choice.connections.size() &&
              document.at("warnings").size() == choice.warnings.size(),
          "the document has what was read");
}

}  // namespace vfpass::fuzz
