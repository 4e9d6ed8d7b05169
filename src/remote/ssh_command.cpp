#include "ssh_command.hpp"

namespace vfpass::remote {

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
