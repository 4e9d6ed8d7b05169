#include "vfpass/setup/setup_view.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::setup {
namespace {

// One script with few processes, because each process takes a tenth of a second in an emulated
// guest. Only interfaces with a `device` link are hardware. Lines that begin with a digit come from
// `ip -o address`.
constexpr const char* viewScript = R"sh(
for tool in ip netplan nmcli networkctl modprobe ifup; do
  command -v $tool >/dev/null 2>&1 && echo "tool $tool"
done
[ -d "$0/run/systemd/system" ] && echo "runs systemd" &&
  case $(systemctl is-system-running 2>/dev/null) in initializing | starting) echo starting ;; esac
[ -d "$0/etc/netplan" ] && echo netplan-folder
command -v nmcli >/dev/null 2>&1 &&
  [ "$(nmcli -t -f RUNNING general 2>/dev/null)" = running ] && echo "runs NetworkManager"
command -v systemctl >/dev/null 2>&1 && systemctl -q is-active systemd-networkd.service 2>/dev/null &&
  echo "runs systemd-networkd"
command -v ifup >/dev/null 2>&1 && systemctl -q is-active networking.service 2>/dev/null &&
  echo "runs networking"
grep -q -s -E '^[[:space:]]*source(-directory)?[[:space:]]+(/etc/network/)?interfaces\.d/?\*?[[:space:]]*$' \
  "$0/etc/network/interfaces" && echo interfaces-folder
show() { [ -r "$2" ] && read -r value <"$2" && echo "$1 $value"; }
for netdev in "$0"/sys/class/net/*; do
  name=${netdev##*/}
  [ -e "$netdev/device" ] || { echo "virtual $name"; continue; }
  echo "netdev $name"
  for key in address mtu flags; do show $key "$netdev/$key"; done
  function=$(readlink "$netdev/device") && echo "function ${function##*/}"
  for key in arp_announce arp_ignore; do
    value=$(cat "$0/proc/sys/net/ipv4/conf/$name/$key" 2>/dev/null) && echo "$key $value"
  done
done
for device in "$0"/sys/bus/pci/devices/*; do
  [ -e "$device" ] || continue
  echo "pci ${device##*/}"
  for child in "$device"/????:??:??.?; do
    [ -e "$child" ] && echo "behind ${device##*/} ${child##*/}"
  done
  vendor= class=
  [ -r "$device/class" ] && read -r vendor <"$device/vendor" && read -r class <"$device/class"
  case $vendor$class in 0x10de0x03*) echo gpu ;; esac
done
[ -d "$0/sys/module/nvidia" ] && echo driver
[ -d "$0/sys/module/nvidia_peermem" ] || [ -d "$0/sys/module/nv_peer_mem" ] && echo peer-loaded
[ -d "$0/sys/module/nv_peer_mem" ] && [ ! -d "$0/sys/module/nvidia_peermem" ] && echo peer-older
grep -q -s '^NvLinkDisable: 1' "$0/proc/driver/nvidia/params" && echo nvlink-disabled
grep -q -s 'nvidia[-_]peermem[.]ko' "$0/lib/modules/$(uname -r)/modules.dep" && echo peer-loadable
ip -o address show 2>/dev/null
echo end
)sh";

// Each file's size precedes its bytes, so that file content cannot be mistaken for a line of the
// script.
constexpr const char* filesScript = R"sh(
for path; do
  file=$0$path
  [ -d "${file%/*}" ] || echo "nofolder ${path%/*}"
  if [ -L "$file" ] || { [ -e "$file" ] && [ ! -f "$file" ]; }; then
    echo "odd $path"
  elif [ -f "$file" ]; then
    fields=$(stat -c '%a %u %g %s' "$file") || exit 1
    if [ "${fields##* }" -gt 262144 ]; then echo "large $path"; continue; fi
    echo "file $path $fields"
    cat "$file" || exit 1
    echo
  else
    echo "none $path"
  fi
done
echo end
)sh";

constexpr std::size_t mostNetdevs = 256;

Error invalidOutput(const std::string& what) {
  return Error("invalid output from a script in the guest: " + what,
               "try again; the guest may have changed in the meantime");
}

bool isHardwareAddress(const std::string& text) {
  std::array<std::uint8_t, 6> ethernet{};
  std::array<std::uint8_t, 20> infiniband{};
  return parseHexBytes(text, ':', ethernet) || parseHexBytes(text, ':', infiniband);
}

std::optional<unsigned> smallNumber(const std::string& text, int base = 10) {
  const auto value = parseNumber(text, base);
  return value && *value <= 0xffffffffU ? std::optional(static_cast<unsigned>(*value))
                                        : std::nullopt;
}

// The rest of a line, which may contain spaces; empty if there is none.
std::string afterWord(const std::string& line, std::string_view word) {
  return line.size() > word.size() ? line.substr(word.size() + 1) : "";
}

/// Parses the output of viewScript line by line.
class ViewReader {
 public:
  void line(const std::string& text) {
    std::istringstream stream(text);
    std::string word;
    std::string value;
    stream >> word >> value;
    if (!word.empty() && word.front() >= '0' && word.front() <= '9') {
      addressLine(value, stream);
    } else if (word == "netdev") {
      startNetdev(text);
    } else if (word == "virtual") {
      addVirtual(text);
    } else if (word == "behind" || word == "pci") {
      functionLine(word, value, stream);
    } else if (!netdevLine(word, value)) {
      factLine(word, value);
    }
  }

  SetupView finish() {
    if (!ended_) {
      throw invalidOutput("it is truncated");
    }
    return view_;
  }

 private:
  // `2: eth0    inet 10.0.2.15/24 brd 10.0.2.255 scope global dynamic eth0`
  void addressLine(std::string name, std::istringstream& rest) {
    name = name.substr(0, name.find('@'));
    std::string family;
    std::string address;
    rest >> family >> address;
    bool isStatic = family == "inet" || family == "inet6";
    for (std::string word; rest >> word;) {
      isStatic = isStatic && word != "dynamic" && word != "link";
    }
    const auto canonical = isStatic ? canonicalAddress(address) : std::nullopt;
    for (auto& netdev : view_.netdevs) {
      if (canonical && netdev.name == name) {
        netdev.state.addresses.insert(*canonical);
      }
    }
  }

  void startNetdev(const std::string& text) {
    const std::string name = afterWord(text, "netdev");
    current_ = nullptr;
    if (isUsableName(name) && view_.netdevs.size() < mostNetdevs) {
      view_.netdevs.push_back({name, "", "", {}});
      current_ = &view_.netdevs.back();
    }
  }

  void addVirtual(const std::string& text) {
    const std::string name = afterWord(text, "virtual");
    current_ = nullptr;
    if (isUsableName(name) && view_.otherNames.size() < mostNetdevs) {
      view_.otherNames.insert(name);
    }
  }

  void functionLine(const std::string& word, const std::string& value, std::istringstream& rest) {
    current_ = nullptr;
    const auto first = parsePciAddress(value);
    std::string other;
    rest >> other;
    const auto second = parsePciAddress(other);
    if (word == "pci" && first) {
      view_.functions.insert(*first);
    } else if (first && second) {
      view_.behind[*first].insert(*second);
    }
  }

  // True when the line is about the interface of the last `netdev` line.
  bool netdevLine(const std::string& word, const std::string& value) {
    if (current_ == nullptr) {
      return false;
    }
    NetdevState& state = current_->state;
    if (word == "address" && isHardwareAddress(value)) {
      current_->address = toLower(value);
    } else if (word == "function" && parsePciAddress(value)) {
      current_->function = value;
    } else if (word == "mtu") {
      state.mtu = smallNumber(value).value_or(0);
    } else if (word == "flags" && value.starts_with("0x")) {
      constexpr unsigned isUp = 0x1;  // IFF_UP
      state.up = (smallNumber(value.substr(2), 16).value_or(0) & isUp) != 0;
    } else if (word == "arp_announce") {
      state.arpAnnounce = smallNumber(value);
    } else if (word == "arp_ignore") {
      state.arpIgnore = smallNumber(value);
    } else {
      return false;
    }
    return true;
  }

  void factLine(const std::string& word, const std::string& value) {
    if (word == "tool") {
      view_.tools.insert(value);
    } else if (word == "runs") {
      view_.running.insert(value);
    }
    view_.netplanFolder = view_.netplanFolder || word == "netplan-folder";
    view_.starting = view_.starting || word == "starting";
    view_.interfacesFolder = view_.interfacesFolder || word == "interfaces-folder";
    view_.gpu = view_.gpu || word == "gpu";
    view_.gpuDriver = view_.gpuDriver || word == "driver";
    view_.nvlinkDisabled = view_.nvlinkDisabled || word == "nvlink-disabled";
    view_.peerMemoryLoaded = view_.peerMemoryLoaded || word == "peer-loaded";
    view_.peerMemoryOlder = view_.peerMemoryOlder || word == "peer-older";
    view_.peerMemoryLoadable = view_.peerMemoryLoadable || word == "peer-loadable";
    ended_ = ended_ || word == "end";
  }

  SetupView view_;
  SetupNetdev* current_ = nullptr;
  bool ended_ = false;
};

/// Parses the output of filesScript: lines, and after each `file` line the file's bytes.
class FilesReader {
 public:
  FilesReader(const std::string& text, SetupView& view) : text_(text), view_(view) {}

  void read() {
    for (std::string line = nextLine(); line != "end"; line = nextLine()) {
      std::istringstream stream(line);
      std::string word;
      std::string path;
      stream >> word >> path;
      if (word == "file") {
        view_.files[path] = content(stream);
      } else if (word == "none") {
        view_.files[path] = {};
      } else if (word == "odd") {
        view_.unusable[path] = "not a regular file";
      } else if (word == "large") {
        view_.unusable[path] = "larger than 256 KiB";
      } else if (word == "nofolder") {
        view_.missingFolders.insert(path);
      } else {
        throw invalidOutput("it has an unknown line about files");
      }
    }
  }

 private:
  std::string nextLine() {
    const auto end = text_.find('\n', at_);
    if (end == std::string::npos) {
      throw invalidOutput("it is truncated");
    }
    std::string line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  FileState content(std::istringstream& fields) {
    std::string mode;
    std::string user;
    std::string group;
    std::string size;
    fields >> mode >> user >> group >> size;
    const auto bytes = smallNumber(size);
    const auto bits = smallNumber(mode, 8);
    if (!bytes || !bits || !smallNumber(user) || !smallNumber(group) || *bits > 07777 ||
        at_ + *bytes >= text_.size() || text_[at_ + *bytes] != '\n') {
      throw invalidOutput("it has an invalid file entry");
    }
    FileState state{true, text_.substr(at_, *bytes), *bits, *smallNumber(user),
                    *smallNumber(group)};
    at_ += *bytes + 1;
    return state;
  }

  const std::string& text_;
  SetupView& view_;
  std::size_t at_ = 0;
};

}  // namespace

bool isUsableName(const std::string& name) {
  constexpr const char* letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
  return !name.empty() && name.size() <= 15 &&
         name.find_first_not_of(letters) == std::string::npos && name.front() != '-' &&
         name.front() != '.';
}

std::optional<std::string> canonicalAddress(const std::string& text) {
  const auto slash = text.find('/');
  const auto prefix =
      slash == std::string::npos ? std::nullopt : smallNumber(text.substr(slash + 1));
  const std::string address = text.substr(0, slash);
  std::array<char, INET6_ADDRSTRLEN> words{};
  std::array<unsigned char, 16> bytes{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (prefix && *prefix <= (family == AF_INET ? 32U : 128U) &&
        ::inet_pton(family, address.c_str(), bytes.data()) == 1 &&
        ::inet_ntop(family, bytes.data(), words.data(), words.size()) != nullptr) {
      return std::string(words.data()) + "/" + std::to_string(*prefix);
    }
  }
  return std::nullopt;
}

std::optional<PciAddress> functionAt(const SetupView& view, const std::vector<PciAddress>& path) {
  if (path.empty() || !view.functions.contains(path.front())) {
    return std::nullopt;
  }
  PciAddress reached = path.front();
  for (auto place = path.begin() + 1; place != path.end(); ++place) {
    const auto bus = view.behind.find(reached);
    if (bus == view.behind.end()) {
      return std::nullopt;
    }
    const auto next = std::ranges::find_if(bus->second, [&place](const PciAddress& function) {
      return function.slot == place->slot && function.function == place->function;
    });
    if (next == bus->second.end()) {
      return std::nullopt;
    }
    reached = *next;
  }
  return reached;
}

SetupView readSetupView(agent::Agent& agent, const std::string& root) {
  const agent::ExecResult result = runShell(agent, viewScript, {root});
  ViewReader reader;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    reader.line(line);
  }
  return reader.finish();
}

void readFiles(agent::Agent& agent, const std::string& root, const std::vector<std::string>& paths,
               SetupView& view) {
  std::vector<std::string> arguments{root};
  arguments.insert(arguments.end(), paths.begin(), paths.end());
  const agent::ExecResult result = runShell(agent, filesScript, arguments);
  if (result.exitCode != 0) {
    throw Error("cannot read files in the guest: " + agent::firstLine(result.err),
                "check that SELinux lets the agent read them");
  }
  FilesReader(result.out, view).read();
}

}  // namespace vfpass::setup
