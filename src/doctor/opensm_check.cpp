#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "check.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/container_and_guest_names.hpp"

namespace vfpass::doctor {
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
