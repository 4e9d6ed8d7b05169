#include "ssh_command.hpp"

#include <algorithm>
#include <sstream>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {

// libvirt's parameters for ssh: virNetSocketNewConnectSSH.
std::vector<std::string> sshOptionsFrom(const std::string& path, const std::string& uri) {
  std::vector<std::string> options;
  std::istringstream parameters(path.substr(std::min(path.find('?'), path.size() - 1) + 1));
  for (std::string each; std::getline(parameters, each, '&');) {
    const std::string name = each.substr(0, each.find('='));
    const std::string value = each.substr(std::min(each.find('=') + 1, each.size()));
    if (name == "keyfile" && value.starts_with('/') && value.find('%') == std::string::npos) {
      options.insert(options.end(), {"-i", value});
    } else if (name == "no_verify" && value == "1") {
      options.insert(options.end(), {"-o", "StrictHostKeyChecking=no"});
    } else if (name != "no_tty" && each != "no_verify=0") {
      throw Error("--peer " + printable(uri) + ": cannot use the parameter " + printable(each),
                  "set it in ssh's configuration (ssh_config(5)) and omit it here; keyfile=/PATH, "
                  "no_verify and no_tty are possible",
                  ExitCode::badInput);
    }
  }
  return options;
}

std::vector<std::string> sshCommand(const PeerPlace& place, const std::string& command) {
  // -k: no delegation of Kerberos credentials; as an option, ssh without GSSAPI warns of it.
  std::vector<std::string> words{"ssh", "-T", "-k"};
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=15", "ConnectionAttempts=1", "ServerAliveInterval=5",
        "ServerAliveCountMax=3", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes",
        "Tunnel=no", "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no",
        "EscapeChar=none", "ControlMaster=no", "ControlPath=none"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), place.sshOptions.begin(), place.sshOptions.end());
  if (!place.port.empty()) {
    words.insert(words.end(), {"-p", place.port});
  }
  if (!place.user.empty()) {
    words.insert(words.end(), {"-l", place.user});
  }
  words.insert(words.end(), {"--", place.host, command});
  return words;
}

}  // namespace vfpass::remote
