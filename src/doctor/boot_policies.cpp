#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "check.hpp"
#include "competing_managers.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::doctor {
namespace {

bool matchesPattern(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// A name that begins with `!` excludes (systemd.link(5)).
bool matchesAny(const std::vector<std::string>& patterns, const std::vector<std::string>& texts) {
  bool positive = false;
  bool matched = false;
  for (const std::string& pattern : patterns) {
    const bool excludes = pattern.starts_with('!');
    positive = positive || !excludes;
    for (const std::string& text : texts) {
      const bool hit = matchesPattern(pattern.substr(excludes ? 1 : 0), text);
      if (hit && excludes) {
        return false;
      }
      matched = matched || hit;
    }
  }
  return matched || !positive;
}

bool selectsPf(const View& view, const Device& pf, const DeviceMatch& match) {
  std::vector<std::string> names;
  std::vector<std::string> macs;
  for (const Netdev& netdev : pf.netdevs) {
    names.push_back(netdev.name);
    macs.push_back(
        toLower(view.root().readText("sys/class/net/" + netdev.name + "/address").value_or("")));
  }
  const auto met = [](const std::vector<std::string>& patterns,
                      const std::vector<std::string>& texts) {
    return patterns.empty() || matchesAny(patterns, texts);
  };
  return met(match.names, names) && met(match.macs, macs) &&
         met(match.paths, {"pci-" + toString(pf.address)}) && met(match.drivers, {pf.driver});
}

// The remedies of doctor's checks, by file.
std::map<std::string, std::string> remediesByFile(const View& view) {
  std::vector<Diagnosis> diagnoses;
  for (const Check& check : competingManagerChecks()) {
    Results results(check.key, check.why, diagnoses);
    check.run(view, results);
  }
  std::map<std::string, std::string> remedies;
  for (const Diagnosis& each : diagnoses) {
    if (each.finding.outcome == Outcome::failed) {
      remedies.emplace(each.finding.subject, each.finding.remedy);
    }
  }
  return remedies;
}

}  // namespace

std::vector<std::size_t> matchingPfs(const View& view, const DeviceMatch& match) {
  std::vector<std::size_t> found;
  for (const std::size_t pf : view.pfs()) {
    if (selectsPf(view, view.function(pf), match)) {
      found.push_back(pf);
    }
  }
  return found;
}

std::string wholeText(const View& view, const std::string& path) {
  constexpr std::size_t largest = 1U << 20U;
  return view.root().readText(path, largest).value_or("");
}

std::optional<bool> truthOf(std::string_view text) {
  const std::string word = toLower(trim(text));
  for (const char* each : {"yes", "true", "on", "1", "y", "t"}) {
    if (word == each) {
      return true;
    }
  }
  for (const char* each : {"no", "false", "off", "0", "n", "f"}) {
    if (word == each) {
      return false;
    }
  }
  return std::nullopt;
}

std::optional<unsigned> countOf(std::string_view text) {
  const auto number = parseNumber(trim(text));
  return number && *number <= std::numeric_limits<unsigned>::max()
             ? std::optional(static_cast<unsigned>(*number))
             : std::nullopt;
}

std::optional<std::uint16_t> vlanIdOf(std::string_view text) {
  constexpr unsigned highest = 4094;
  const auto id = countOf(text);
  return id && *id <= highest ? std::optional(static_cast<std::uint16_t>(*id)) : std::nullopt;
}

void addForEach(const View& view, const std::vector<std::size_t>& pfs, const BootPolicy& policy,
                std::vector<BootPolicy>& policies) {
  if (pfs.empty()) {
    policies.push_back(policy);
  }
  for (const std::size_t pf : pfs) {
    policies.push_back(policy);
    policies.back().pf = view.function(pf).address;
  }
}

std::vector<std::string> splitWords(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(separators, at)) < text.size();) {
    const auto end = std::min(text.find_first_of(separators, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<BootPolicy> bootPolicies(const host::Root& root, const Topology& topology) {
  const Requirements requirements = requireEverything(topology);
  const Inquiries inquiries;
  const View view(root, topology, requirements, inquiries);
  std::vector<BootPolicy> policies;
  for (const auto reader : {netplanPolicies, networkManagerPolicies, systemdPolicies}) {
    std::ranges::move(reader(view), std::back_inserter(policies));
  }
  const auto remedies = remediesByFile(view);
  for (BootPolicy& policy : policies) {
    const auto remedy = remedies.find(policy.file);
    policy.remedy = remedy == remedies.end() ? "" : remedy->second;
  }
  std::vector<BootPolicy> scripts = scriptPolicies(view);
  for (BootPolicy& policy : scripts) {
    const auto remedy = remedies.find(policy.file);
    if (policy.remedy.empty() && remedy != remedies.end()) {
      policy.remedy = remedy->second;
    }
  }
  std::ranges::move(scripts, std::back_inserter(policies));
  return policies;
}

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
