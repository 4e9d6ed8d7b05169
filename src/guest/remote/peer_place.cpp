#include "vfpass/remote/peer_place.hpp"

#include <algorithm>
#include <sstream>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

constexpr const char* usage =
    "specify a VM of this host, `host2:VM2`, or `qemu+ssh://host2/system VM2`";

[[noreturn]] void refuse(const std::string& text, const std::string& reason) {
  throw Error("--peer " + printable(text) + ": " + reason, usage, ExitCode::badInput);
}

// ssh takes a destination that begins with '-' for an option.
bool isName(const std::string& text) {
  return !text.empty() && text.front() != '-' && text.size() <= 255 &&
         std::ranges::all_of(text, [](unsigned char each) {
           return std::isalnum(each) != 0 || each == '.' || each == '-' || each == '_';
         });
}

bool isIpv6(const std::string& text) {
  return text.size() <= 64 && text.find(':') != std::string::npos &&
         std::ranges::all_of(text, [](unsigned char each) {
           return std::isxdigit(each) != 0 || each == ':' || each == '.' || each == '%' ||
                  std::islower(each) != 0;
         });
}

bool isPort(const std::string& text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](unsigned char each) { return std::isdigit(each) != 0; });
}

// Reads `user@`, if any, from the beginning of `rest`.
std::string takeUser(std::string& rest, const std::string& text) {
  const auto at = rest.find('@');
  if (at == std::string::npos) {
    return {};
  }
  std::string user = rest.substr(0, at);
  if (!isName(user)) {
    refuse(text, "invalid user name");
  }
  rest.erase(0, at + 1);
  return user;
}

// Reads `host` or `[address]` from the beginning of `rest`.
std::string takeHost(std::string& rest, const std::string& text) {
  const bool bracketed = rest.starts_with('[');
  const auto end = bracketed ? rest.find(']') : rest.find(':');
  if (bracketed && end == std::string::npos) {
    refuse(text, "no ] after the address");
  }
  const std::string host = bracketed ? rest.substr(1, end - 1) : rest.substr(0, end);
  if (bracketed ? !isIpv6(host) : !isName(host)) {
    refuse(text, "invalid host name");
  }
  rest.erase(0, bracketed ? end + 1 : end);
  return host;
}

std::string withBrackets(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

PeerPlace fromHostAndVm(const std::string& text) {
  PeerPlace place;
  std::string rest = text;
  place.user = takeUser(rest, text);
  place.host = takeHost(rest, text);
  if (!rest.starts_with(':') || rest.size() == 1) {
    refuse(text, "no VM after the host");
  }
  place.vm = rest.substr(1);
  place.ssh = true;
  // As in the command that messages suggest: without no_tty, virsh's ssh could ask for a password.
  place.uri = "qemu+ssh://" + (place.user.empty() ? "" : place.user + "@") +
              withBrackets(place.host) + "/system?no_tty=1";
  return place;
}

bool isSchemeOverNetwork(const std::string& scheme) {
  const auto& known = {"qemu", "qemu+tls", "qemu+tcp", "qemu+ssh", "qemu+libssh2", "qemu+libssh"};
  return std::ranges::find(known, scheme) != known.end();
}

PeerPlace fromUri(const std::string& uri, const std::string& vm) {
  const auto schemeEnd = uri.find("://");
  const std::string scheme = uri.substr(0, schemeEnd);
  if (!isSchemeOverNetwork(scheme)) {
    refuse(uri, "not a URI of a QEMU host");
  }
  PeerPlace place;
  place.vm = vm;
  // Divides `user@host:port` from the path with its parameters.
  std::string rest = uri.substr(schemeEnd + 3);
  const std::string path = rest.substr(std::min(rest.find('/'), rest.size()));
  rest.resize(rest.size() - path.size());
  if (path.substr(0, path.find('?')) != "/system") {
    refuse(uri, "not the system libvirt of a host, whose path is /system");
  }
  if (rest.empty()) {  // this host
    return place;
  }
  place.uri = uri;
  place.user = takeUser(rest, uri);
  place.host = takeHost(rest, uri);
  if (!rest.empty()) {
    if (!isPort(rest.substr(1))) {
      refuse(uri, "invalid port");
    }
    // With another transport the port is not ssh's.
    place.port = scheme.find("ssh") == std::string::npos ? "" : rest.substr(1);
  }
  place.ssh = scheme == "qemu+ssh";
  if (place.ssh) {
    place.sshOptions = sshOptionsFrom(path, uri);
  }
  return place;
}

}  // namespace

PeerPlace parsePeer(const std::vector<std::string>& words) {
  const std::string first = words.empty() ? "" : words.front();
  const bool uri = first.find("://") != std::string::npos;
  if (uri && words.size() != 2) {
    refuse(first, "no VM after the URI");
  }
  if (!uri && words.size() != 1) {
    refuse(join(words, " "), "more than one VM");
  }
  if (words.back().empty()) {
    refuse(join(words, " "), "no VM");
  }
  PeerPlace place;
  if (uri) {
    place = fromUri(first, words[1]);
  } else if (first.find(':') != std::string::npos) {
    place = fromHostAndVm(first);
  } else {
    place.vm = first;
  }
  place.text = place.isRemote() ? place.host + ":" + place.vm : place.vm;
  return place;
}

std::vector<PeerPlace> parsePeers(const std::vector<std::string>& words) {
  std::vector<PeerPlace> places;
  for (std::size_t next = 0; next < words.size();) {
    const bool uri = words[next].find("://") != std::string::npos;
    const std::size_t end = std::min(next + (uri ? 2 : 1), words.size());
    PeerPlace place = parsePeer({words.begin() + static_cast<std::ptrdiff_t>(next),
                                 words.begin() + static_cast<std::ptrdiff_t>(end)});
    if (std::ranges::find(places, place.text, &PeerPlace::text) != places.end()) {
      refuse(place.text, "named twice");
    }
    places.push_back(std::move(place));
    next = end;
  }
  return places;
}

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
