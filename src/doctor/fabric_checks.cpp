#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "check.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/container_and_guest_names.hpp"
#include "vfpass/host/flow_control.hpp"

namespace vfpass::doctor {
namespace {

constexpr unsigned priorities = 8;

using host::FlowControl;

std::vector<std::size_t> rocePorts(const View& view) {
  std::vector<std::size_t> found;
  std::ranges::copy_if(usedPfs(view), std::back_inserter(found), [&](std::size_t number) {
    const Device& pf = view.function(number);
    return layerOf(pf) == LinkLayer::ethernet && !pf.netdevs.empty();
  });
  return found;
}

std::string withoutRoce(const View& view) { return rocePorts(view).empty() ? "no RoCE port" : ""; }

// `8 1`: the bit mask of priorities, and whether DSCP is trusted.
std::optional<FlowControl> flowControlIn(const std::string& text) {
  const auto blank = std::min(text.find(' '), text.size());
  const auto bits = parseNumber(std::string_view(text).substr(0, blank));
  const auto trust = parseNumber(trim(std::string_view(text).substr(blank)));
  if (!bits || *bits >= 1U << priorities || !trust || *trust > 1) {
    return std::nullopt;
  }
  return FlowControl{static_cast<std::uint8_t>(*bits), *trust == 1};
}

std::optional<FlowControl> flowControlOf(const View& view, const std::string& netdev) {
  const auto answer = view.answer("dcb/" + netdev, [&]() -> std::optional<std::string> {
    try {
      const auto found = host::readFlowControl(netdev, deadlines::doctorNetlink);
      return found ? std::optional(std::to_string(found->pausedPriorities) +
                                   (found->trustsDscp ? " 1" : " 0"))
                   : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  });
  return answer ? flowControlIn(*answer) : std::nullopt;
}

// Priorities at which the port both marks (roce_np) and reacts (roce_rp). Only OFED shows them.
std::optional<unsigned> congestionControl(const View& view, const Device& pf) {
  const std::string folder = View::pathOf(pf, "net/" + pf.netdev() + "/ecn/");
  if (!view.root().exists(folder + "roce_np/enable") ||
      !view.root().exists(folder + "roce_rp/enable")) {
    return std::nullopt;
  }
  unsigned bits = 0;
  for (unsigned priority = 0; priority < priorities; ++priority) {
    const std::string file = "/enable/" + std::to_string(priority);
    const bool marks = view.root().readNumber(folder + "roce_np" + file) == 1U;
    const bool reacts = view.root().readNumber(folder + "roce_rp" + file) == 1U;
    bits |= marks && reacts ? 1U << priority : 0U;
  }
  return bits;
}

std::string listText(unsigned bits) {
  std::vector<std::string> list;
  for (unsigned priority = 0; priority < priorities; ++priority) {
    if ((bits >> priority & 1U) != 0) {
      list.push_back(std::to_string(priority));
    }
  }
  return list.empty() ? "off" : "on priority " + join(list, ", ");
}

std::string seenText(const std::optional<FlowControl>& flow, const std::optional<unsigned>& ecn) {
  std::vector<std::string> parts;
  parts.push_back("PFC " + (flow ? listText(flow->pausedPriorities) : "unknown"));
  parts.push_back("ECN " + (ecn ? listText(*ecn) : "unknown"));
  if (flow) {
    parts.emplace_back(flow->trustsDscp ? "DSCP trusted" : "no DSCP mapped to a priority");
  }
  return join(parts, ", ");
}

// mlnx_qos is a program of OFED, dcb one of iproute2.
std::string queryFor(const Device& pf, const std::string& netdev) {
  return (pf.vendor == mellanox ? "mlnx_qos -i " : "dcb pfc show dev ") + shellArgument(netdev);
}

// The configuration of the switches cannot be checked from the host.
void checkFlowControl(const View& view, Results& results) {
  std::optional<unsigned> paused;
  for (const std::size_t number : rocePorts(view)) {
    const Device& pf = view.function(number);
    const std::string& netdev = pf.netdev();
    const auto flow = flowControlOf(view, netdev);
    const auto ecn = congestionControl(view, pf);
    const std::string expected = "PFC or ECN on, the same PFC on all ports";
    const std::string seen = seenText(flow, ecn);
    const bool differs = flow && paused && flow->pausedPriorities != *paused;
    const bool on = (flow && flow->pausedPriorities != 0) || ecn.value_or(0) != 0;
    if (flow && !paused) {
      paused = flow->pausedPriorities;
    }
    if (differs) {
      results.failed(netdev, expected, seen + "; the first port has PFC " + listText(*paused),
                     "compare with dcb pfc show dev " + shellArgument(netdev) +
                         ", then configure all ports alike");
    } else if (on) {
      results.passed(netdev, expected, seen);
    } else if (flow && ecn) {
      results.failed(
          netdev, expected, seen,
          "mlnx_qos -i " + shellArgument(netdev) +
              " --trust dscp --pfc 0,0,0,1,0,0,0,0; then enable the same priority on the switch");
    } else {
      results.notObservable(netdev, expected, seen, queryFor(pf, netdev));
    }
  }
}

constexpr std::array flowControlTable{
    Check{"flow-control", "dropped frames slow RoCE down severely", withoutRoce, checkFlowControl}};

}  // namespace

std::span<const Check> flowControlChecks() { return flowControlTable; }

namespace {

// The file that OpenSM reads without -F is compiled in: Debian, SUSE and NVIDIA's packages; the
// RHEL family; sources built with other prefixes. The last one is the cache file of OFED 1.x.
constexpr std::array defaultFiles{"etc/opensm/opensm.conf", "etc/rdma/opensm.conf",
                                  "etc/opensm.conf", "usr/local/etc/opensm/opensm.conf",
                                  "var/cache/opensm/opensm.opts"};
// Several instances have a file each, such as RHEL's `opensm.conf.1` (opensm-launch).
constexpr std::array instanceFolders{"etc/opensm", "etc/rdma"};
constexpr std::string_view expectedLine = "virt_enabled 2";
constexpr std::string_view ofDefault = "default";
constexpr std::string_view noInstance = "none";

bool isInstanceFile(std::string_view name) {
  constexpr std::string_view prefix = "opensm.conf.";
  constexpr std::string_view suffix = ".conf";
  if (name.starts_with(prefix)) {  // not `opensm.conf.rpmsave`
    return parseNumber(name.substr(prefix.size())).has_value();
  }
  return name != "opensm.conf" && name.starts_with("opensm") && name.ends_with(suffix);
}

void addDefaults(const View& view, std::set<std::string>& files) {
  std::ranges::copy_if(defaultFiles, std::inserter(files, files.end()),
                       [&](const char* file) { return view.root().exists(file); });
}

void addInstances(const View& view, std::set<std::string>& files) {
  for (const std::string folder : instanceFolders) {
    for (const std::string& name : view.root().list(folder)) {
      if (isInstanceFile(name)) {
        files.insert(folder + "/" + name);
      }
    }
  }
}

// `opensm -F FILE`, `--config FILE`, `--config=FILE` (opensm(8)).
std::string configurationIn(std::string_view commandLine) {
  const auto next = [&] {
    const auto end = std::min(commandLine.find('\0'), commandLine.size());
    std::string word(commandLine.substr(0, end));
    commandLine.remove_prefix(std::min(end + 1, commandLine.size()));
    return word;
  };
  constexpr std::string_view assigned = "--config=";
  while (!commandLine.empty()) {
    const std::string word = next();
    if (word == "-F" || word == "--config") {
      return next();
    }
    if (word.starts_with(assigned)) {
      return word.substr(assigned.size());
    }
    if (word.starts_with("-F")) {
      return word.substr(2);
    }
  }
  return std::string(ofDefault);
}

// One line for each running instance: its file, or `default`. nullopt if processes are hidden.
std::optional<std::string> readInstances(const host::Root& root) {
  if (!root.readText("proc/1/comm")) {
    return std::nullopt;
  }
  std::set<std::string> files;
  for (const std::string& process : root.list("proc")) {
    if (parseNumber(process) && root.readText("proc/" + process + "/comm") == "opensm") {
      const std::string file = configurationIn(host::readCommandLine(root, process));
      if (file == ofDefault || file.starts_with('/')) {
        files.insert(printable(file));
      }
    }
  }
  return files.empty() ? std::string(noInstance) : join({files.begin(), files.end()}, "\n");
}

// The files that the running instances read; unless that is known, all that one could read.
std::set<std::string> filesOf(const View& view, const std::optional<std::string>& instances) {
  std::set<std::string> files;
  for (const std::string& line : splitLines(instances.value_or(""))) {
    if (line == ofDefault) {
      addDefaults(view, files);
    } else if (line.starts_with('/')) {
      files.insert(line.substr(1));
    }
  }
  if (files.empty()) {
    addDefaults(view, files);
    addInstances(view, files);
  }
  return files;
}

// OpenSM applies lines in their order, so the last one counts.
std::string settingIn(const View& view, const std::string& file) {
  std::string found;
  for (const std::string& line : view.settings(file)) {
    if (line.starts_with("virt_enabled")) {
      found = "virt_enabled " + std::string(trim(std::string_view(line).substr(12)));
    }
  }
  return found;
}

// OpenSM has no command that changes its file.
std::string remedyFor(const View& view, const std::string& subject) {
  const bool ofNvidia = view.root().exists("etc/init.d/opensmd");
  return "in " + printable(subject) + ", set virt_enabled 2; then `systemctl restart " +
         (ofNvidia ? "opensmd" : "opensm") + "`";
}

void judgeFile(const View& view, const std::string& file, bool used, Results& results) {
  const std::string subject = "/" + file;
  const std::string found = settingIn(view, file);
  if (found == expectedLine) {
    results.passed(subject, std::string(expectedLine), found);
  } else if (!found.empty()) {
    results.failedIfUsed(used, subject, std::string(expectedLine), found, remedyFor(view, subject));
  } else {
    results.failedIfUsed(used, subject, std::string(expectedLine), "not set",
                         remedyFor(view, subject) +
                             " (only NVIDIA's OpenSM has this setting, not the distributions')");
  }
}

}  // namespace

std::string withoutInfiniband(const View& view) {
  return pfsWith(view, LinkLayer::infiniband).empty() ? "no InfiniBand port" : "";
}

// 0 leaves the fabric's setting, 1 disables virtual ports, 2 enables them.
void checkOpenSm(const View& view, Results& results) {
  const auto instances = view.answer("opensm", [&] { return readInstances(view.root()); });
  const auto files = filesOf(view, instances);
  const std::string elsewhere =
      "on the subnet manager's host: grep virt_enabled /etc/opensm/opensm.conf";
  if (instances == noInstance) {
    return results.notObservable("", std::string(expectedLine), "OpenSM does not run on this host",
                                 elsewhere);
  }
  if (files.empty()) {
    return results.notObservable("", std::string(expectedLine),
                                 instances ? "OpenSM runs without a configuration file"
                                           : "no OpenSM configuration on this host",
                                 elsewhere);
  }
  const auto ports = pfsWith(view, LinkLayer::infiniband);
  const bool used = std::ranges::any_of(ports, [&](std::size_t pf) { return view.uses(pf); });
  for (const std::string& file : files) {
    judgeFile(view, file, used, results);
  }
}

}  // namespace vfpass::doctor
