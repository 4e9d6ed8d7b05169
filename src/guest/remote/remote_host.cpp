#include "vfpass/remote/remote_host.hpp"

#include <algorithm>
#include <chrono>

#include "child_process.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/remote/peer_place.hpp"

namespace vfpass::remote {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits replyLimits{std::size_t{1} << 20U, 8};

}  // namespace

template <typename Read>
auto RemoteHost::read(const Json& question, Read reader) const {
  JsonSource source{name_ + ": invalid reply from its vfpass"};
  const Json json = parseJson(ask_(question.dump()), replyLimits, source);
  source.remedy = "install the same version of vfpass on both hosts";
  source.allowsUnknownMembers = true;
  const JsonReader reply(json, source);
  if (const JsonReader error = reply["error"]; !error.isMissing()) {
    throw Error(name_ + ": " + printable(error.requireText()),
                printable(reply["remedy"].textOr("")));
  }
  return reader(reply);
}

RemoteHost::RemoteHost(std::string name, Ask ask, const Uuid& domain)
    : name_(std::move(name)), ask_(std::move(ask)) {
  // Before anything else of the reply: what it means depends on the version.
  observation_ = read({{"version", protocolVersion}, {"domain", toString(domain)}},
                      [&](const JsonReader& reply) {
                        const int theirs = reply["version"].requireNumber<int>();
                        if (theirs != protocolVersion) {
                          const Error refusal = differentVersion(theirs);
                          throw Error(name_ + ": " + refusal.what(), refusal.remedy());
                        }
                        return readObservation(reply);
                      });
}

verify::HostSide RemoteHost::host(const std::string& entry) const {
  return read({{"host", entry}}, readHostSide);
}

std::optional<VfTraffic> RemoteHost::traffic(const std::string& entry) const {
  return read({{"traffic", entry}}, readTraffic);
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
