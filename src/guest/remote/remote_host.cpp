#include "vfpass/remote/remote_host.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "child_process.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/error.hpp"
#include "vfpass/remote/peer_place.hpp"

namespace vfpass::remote {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits replyLimits{std::size_t{1} << 20U, 8};

}  // namespace

template <typename Read>
auto RemoteHost::read(const Json& question, Read reader) const {
  try {
    return reader(request(question));
  } catch (const JsonRefused& error) {
    throw Error(name_ + ": invalid reply from its vfpass: " + error.what());
  } catch (const Json::exception&) {
    throw Error(name_ + ": invalid reply from its vfpass",
                "install the same version of vfpass on both hosts");
  } catch (const std::bad_optional_access&) {  // an address or a word that does not exist
    throw Error(name_ + ": invalid reply from its vfpass",
                "install the same version of vfpass on both hosts");
  }
}

RemoteHost::RemoteHost(std::string name, Ask ask, const Uuid& domain)
    : name_(std::move(name)), ask_(std::move(ask)) {
  observation_ =
      read({{"version", protocolVersion}, {"domain", toString(domain)}}, readObservation);
}

verify::HostSide RemoteHost::host(const std::string& entry) const {
  return read({{"host", entry}}, readHostSide);
}

std::optional<VfTraffic> RemoteHost::traffic(const std::string& entry) const {
  return read({{"traffic", entry}}, readTraffic);
}

Json RemoteHost::request(const Json& question) const {
  const Json reply = parseBoundedJson(ask_(question.dump()), replyLimits);
  if (reply.is_object() && reply.contains("error")) {
    throw Error(name_ + ": " + printable(reply.at("error").get<std::string>()),
                printable(reply.value("remedy", "")));
  }
  return reply;
}

RemoteHost observe(const PeerPlace& place, const Uuid& domain, const Deadline& deadline,
                   const std::function<void()>& checkpoint) {
  // The VM's name is not part of the command, which a shell interprets there.
  const auto process =
      std::make_shared<LineProcess>(sshCommand(place, "vfpass observe"), checkpoint);
  return {place.host,
          [process, deadline](const std::string& line) {
            return process->ask(line, std::min(deadlines::remoteReply, deadline.left()),
                                replyLimits.bytes);
          },
          domain};
}

}  // namespace vfpass::remote
