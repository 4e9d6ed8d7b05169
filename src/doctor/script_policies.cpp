#include <algorithm>
#include <utility>

#include "boot_policy_readers.hpp"
#include "competing_managers.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

bool isPartOfName(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-' ||
         letter == '.';
}

bool namesWhole(std::string_view text, const std::string& name) {
  for (auto at = text.find(name); !name.empty() && at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || !isPartOfName(text[at - 1])) &&
        (end == text.size() || !isPartOfName(text[end]))) {
      return true;
    }
  }
  return false;
}

// `echo 8 > /sys/class/net/ens1f0np0/device/sriov_numvfs`: by netdev or address; nothing if the
// line has a variable.
std::vector<std::size_t> namedPfs(const View& view, std::string_view line) {
  std::vector<std::size_t> found;
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    if (namesWhole(line, pf.netdev()) || namesWhole(line, toString(pf.address))) {
      found.push_back(number);
    }
  }
  return found;
}

std::optional<unsigned> echoedCount(const std::string& line) {
  const auto words = splitWords(line, " \t\"'>");
  const auto echo = std::ranges::find(words, "echo");
  return echo == words.end() || echo + 1 == words.end() ? std::nullopt : countOf(*(echo + 1));
}

BootPolicy scriptPolicy(const BootLine& line) {
  BootPolicy policy;
  policy.file = line.file;
  policy.manager = "script";
  policy.text = line.text + " in line " + std::to_string(line.line);
  return policy;
}

void addCounts(const View& view, std::vector<BootPolicy>& policies) {
  for (const BootLine& line : vfCountLines(view)) {
    const std::string text = lineOfFile(view.root(), line);
    BootPolicy policy = scriptPolicy(line);
    const auto pfs = namedPfs(view, text);
    policy.vfCount = pfs.empty() ? std::nullopt : echoedCount(text);
    addForEach(view, pfs, policy, policies);
  }
}

/// The words of `ip link set NETDEV vf NUMBER KEY VALUE ...` (ip-link(8)), or of one of its VFs.
class IpLinkWords {
 public:
  explicit IpLinkWords(const std::string& command) : words_(splitWords(command, " \t\v\"'")) {}

  /// One command can set several VFs: each `vf` ends the values of the one before (iplink_parse()
  /// in iproute2).
  [[nodiscard]] std::vector<IpLinkWords> vfs() const {
    std::vector<IpLinkWords> parts;
    for (auto begin = std::ranges::find(words_, "vf"); begin != words_.end();) {
      const auto end = std::find(begin + 1, words_.end(), "vf");
      parts.push_back(IpLinkWords(std::vector<std::string>(begin, end)));
      begin = end;
    }
    return parts.empty() ? std::vector{*this} : parts;
  }

  [[nodiscard]] std::string after(const std::string& key) const {
    const auto found = std::ranges::find(words_, key);
    return found == words_.end() || found + 1 == words_.end() ? "" : *(found + 1);
  }

  [[nodiscard]] std::string netdev() const {
    const std::string named = after("dev");
    return named.empty() ? after("set") : named;
  }

  [[nodiscard]] VfSettings settings() const {
    VfSettings settings;
    settings.mac = parseMacAddress(after("mac"));
    settings.nodeGuid = parseGuid(after("node_guid"));
    settings.portGuid = parseGuid(after("port_guid"));
    settings.spoofCheck = truthOf(after("spoofchk"));
    settings.trust = truthOf(after("trust"));
    settings.linkState = parseLinkState(after("state"));
    if (const auto vlan = vlanIdOf(after("vlan"))) {
      settings.vlan = Vlan{*vlan, static_cast<std::uint8_t>(countOf(after("qos")).value_or(0) & 7U),
                           parseVlanProtocol(after("proto")).value_or(VlanProtocol::dot1q)};
    }
    const auto most = countOf(after("max_tx_rate").empty() ? after("rate") : after("max_tx_rate"));
    const auto least = countOf(after("min_tx_rate"));
    if (most || least) {
      settings.rate = Rate{least.value_or(0), most.value_or(0)};
    }
    return settings;
  }

 private:
  explicit IpLinkWords(std::vector<std::string> words) : words_(std::move(words)) {}

  std::vector<std::string> words_;
};

void addVfSettings(const View& view, std::vector<BootPolicy>& policies) {
  for (const BootLine& line : vfSettingLines(view.root())) {
    const IpLinkWords words(line.text);
    for (const IpLinkWords& vf : words.vfs()) {
      BootPolicy policy = scriptPolicy(line);
      policy.vf = countOf(vf.after("vf"));
      policy.settings = vf.settings();
      policy.remedy =
          "in " + line.file + ", remove the command in line " + std::to_string(line.line);
      addForEach(view, namedPfs(view, words.netdev()), policy, policies);
    }
  }
}

}  // namespace

std::vector<BootPolicy> scriptPolicies(const View& view) {
  std::vector<BootPolicy> policies;
  addCounts(view, policies);
  addVfSettings(view, policies);
  return policies;
}

}  // namespace vfpass::doctor
