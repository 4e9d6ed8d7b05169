#include "vfpass/agent/guest_scripts.hpp"

#include <nettle/sha2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>

#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::agent {

ExecResult runShell(Agent& agent, const std::string& script, std::vector<std::string> arguments,
                    std::string_view input) {
  arguments.insert(arguments.begin(), {"-c", script});
  return agent.run("/bin/sh", arguments, input);
}

std::string firstLine(const std::string& text) {
  return printable(text.substr(0, std::min(text.find('\n'), std::size_t{200})));
}

std::string sha256(std::string_view content) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, content.size(), reinterpret_cast<const std::uint8_t*>(content.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  std::string text;
  for (const std::uint8_t byte : digest) {
    constexpr const char* digits = "0123456789abcdef";
    text += {digits[byte >> 4U], digits[byte & 15U]};
  }
  return text;
}

namespace {

// $1: MAC or port GUID. The hardware address of an IPoIB interface ends in its port GUID.
// Interfaces without a device (VLANs, bonds) are skipped, because they copy the MAC of the one
// below them.
constexpr const char* script = R"(
for netdev in /sys/class/net/*; do
  [ -e "$netdev/device" ] && read -r address <"$netdev/address" || continue
  case $address in *"$1") ;; *) continue ;; esac
  echo "netdev ${netdev##*/}"
  [ -e "$netdev/master" ] && { master=$(readlink "$netdev/master"); echo "master ${master##*/}"; }
  for verbs in "$netdev"/device/infiniband_verbs/*; do
    [ -e "$verbs" ] || continue
    echo "verbs ${verbs##*/}"
    ls -l /proc/[0-9]*/fd 2>/dev/null | while read -r line; do
      case $line in
        /proc/*) pid=${line#/proc/}; pid=${pid%%/*} ;;
        *"/dev/infiniband/${verbs##*/}")
          read -r command <"/proc/$pid/comm" && echo "process $pid $command" ;;
      esac
    done
  done
done
exit 0
)";

std::string lowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char character) {
    return static_cast<char>(character >= 'A' && character <= 'Z' ? character + 32 : character);
  });
  return text;
}

// Every interface has a link-local address by default, so that is no sign of use.
bool isConfigured(const std::string& address) {
  return !address.empty() && !lowerCase(address).starts_with("fe80:");
}

void addAddresses(const JsonReader& interfaces, const std::string& wanted, DeviceUse& use) {
  for (const JsonReader& interface : interfaces.listOrEmpty()) {
    if (!lowerCase(interface["hardware-address"].textOr("")).ends_with(wanted)) {
      continue;
    }
    for (const JsonReader& entry : interface["ip-addresses"].listOrEmpty()) {
      const std::string address = entry["ip-address"].textOr("");
      if (isConfigured(address)) {
        use.users.push_back("interface " + printable(interface["name"].textOr("")) +
                            " has address " + printable(address));
      }
    }
  }
}

void addLine(const std::string& line, bool& found, DeviceUse& use) {
  const auto value = [&](std::string_view word) { return printable(line.substr(word.size())); };
  if (line.starts_with("netdev ")) {
    found = true;
  } else if (line.starts_with("master ")) {
    use.users.push_back("its interface belongs to " + value("master "));
  } else if (line.starts_with("process ")) {
    const std::string user = "process " + value("process ") + " has its RDMA device open";
    if (std::ranges::find(use.users, user) == use.users.end()) {
      use.users.push_back(user);
    }
  }
}

void runScript(Agent& agent, const std::string& address, DeviceUse& use) {
  const ExecResult result = agent.run("/bin/sh", {"-c", script, "vfpass", address});
  std::istringstream lines(result.out);
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    addLine(line, found, use);
  }
  if (!found) {
    use.notObservable.push_back("no network driver in the guest is bound to the device with " +
                                address + ", so a program may be using it directly");
  }
}

}  // namespace

DeviceUse findUsers(Agent& agent, const Lease& lease) {
  DeviceUse use;
  const std::string address = guestIdentityOf(lease);
  if (address.empty()) {
    use.notObservable.push_back(
        "the guest agent cannot tell whether " +
        std::string(isVf(lease) ? "a VF whose lease records no MAC" : "a PCI function") +
        " is in use");
    return use;
  }
  const auto observe = [&](const auto& ask) {
    try {
      ask();
    } catch (const Error& error) {
      use.notObservable.push_back(error.what() +
                                  (error.remedy().empty() ? "" : "; " + error.remedy()));
    }
  };
  observe([&] {
    const nlohmann::json interfaces = agent.call("guest-network-get-interfaces");
    addAddresses(JsonReader(interfaces), address, use);
  });
  observe([&] { runScript(agent, address, use); });
  return use;
}

}  // namespace vfpass::agent
