#include "vfpass/remote/remote_host.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "line_process.hpp"
#include "vfpass/base/bounded_json.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/error.hpp"

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

std::vector<std::string> sshCommand(const PeerPlace& place) {
  std::vector<std::string> command{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"};
  if (!place.port.empty()) {
    command.insert(command.end(), {"-p", place.port});
  }
  if (!place.user.empty()) {
    command.insert(command.end(), {"-l", place.user});
  }
  // The VM's name is not part of the command, which a shell interprets there.
  command.insert(command.end(), {"--", place.host, "vfpass observe"});
  return command;
}

RemoteHost observe(const PeerPlace& place, const Uuid& domain,
                   const std::function<void()>& checkpoint) {
  const auto process = std::make_shared<LineProcess>(sshCommand(place), checkpoint);
  return {place.host,
          [process](const std::string& line) {
            return process->ask(line, deadlines::remoteReply, replyLimits.bytes);
          },
          domain};
}

}  // namespace vfpass::remote
