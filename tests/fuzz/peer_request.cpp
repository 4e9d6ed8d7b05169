// Requests that the vfpass of another host sends to `vfpass observe`.
// covers: src/guest/remote/observe_protocol.cpp -toJson -fields -readObservation
// -readHostSide -readTraffic -isShortEntryName -isPlacement
#include <nlohmann/json.hpp>

#include "fuzz/target.hpp"
#include "vfpass/remote/observe_protocol.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const remote::ServedHost served{
      [](const Uuid& domain) {
        return remote::Observation{toString(domain), {}, {}};
      },
      [](const std::string& entry) -> verify::HostSide { throw Error(entry, entry); },
      [](const std::string& entry) {
        return entry.empty() ? std::nullopt : std::optional(VfTraffic{entry.size(), 2, 3, 4});
      },
      [](const std::string& entry) {
        return entry.empty() ? std::nullopt : std::optional(VfTraffic{1, entry.size(), 0, 0});
      }};
  const std::string reply = remote::replyTo(std::string(input), served);
  require(reply.find('\n') == std::string::npos, "a reply is one line");
  require(nlohmann::json::accept(reply), "a reply is JSON");
}

}  // namespace vfpass::fuzz
