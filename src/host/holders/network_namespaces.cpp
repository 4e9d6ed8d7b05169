#include "holders/network_namespaces.hpp"

#include <algorithm>
#include <map>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t fileLimit = 4;  // of residents, and of openers
constexpr std::size_t longestName = 64;

// The data collected about one namespace; each text is the first one found.
struct Traces {
  std::string name;                    // of `ip netns`
  std::string resident;                // a process in it
  std::string mount;                   // another mount point
  std::string opener;                  // a process that has it open
  std::vector<std::string> residents;  // files, in order of how safely they can be opened
  std::vector<std::string> openers;
  std::vector<NamespaceMount> mounts;
};

using TraceMap = std::map<std::uint64_t, Traces>;

void addFile(std::vector<std::string>& files, std::string file) {
  if (files.size() < fileLimit) {
    files.push_back(std::move(file));
  }
}

void keepFirst(std::string& text, std::string value) {
  if (text.empty()) {
    text = std::move(value);
  }
}

// `ip netns add blue` mounts the namespace at /run/netns/blue. /var/run is a link to /run.
std::string netnsName(std::string_view path) {
  constexpr std::string_view directory = "/run/netns/";
  const std::string_view name =
      path.starts_with(directory) ? path.substr(directory.size()) : std::string_view{};
  return name.find('/') == std::string_view::npos ? printable(name.substr(0, longestName))
                                                  : std::string{};
}

void addMounts(const MountTable& mounts, TraceMap& found) {
  for (const MountedNamespace& mounted : mounts.networkNamespaces()) {
    Traces& traces = found[mounted.inode];
    // In a mount namespace of their own, users can use the name of any other namespace.
    keepFirst(traces.name, mounted.ours ? netnsName(mounted.mount.path) : std::string{});
    keepFirst(traces.mount, printable(mounted.mount.path.substr(0, 4 * longestName)));
    traces.mounts.push_back(mounted.mount);
  }
}

void addProcess(const Process& process, TraceMap& found) {
  if (process.networkNamespace) {
    Traces& traces = found[*process.networkNamespace];
    keepFirst(traces.resident, describe(process));
    addFile(traces.residents, "/proc/" + process.id + "/ns/net");
  }
  for (const OwnNamespaces& thread : process.threads) {
    if (thread.namespaces.network) {
      Traces& traces = found[*thread.namespaces.network];
      keepFirst(traces.resident, describe(process));
      addFile(traces.residents, "/proc/" + thread.directory + "/ns/net");
    }
  }
  for (const OpenFile& file : process.files) {
    if (const auto inode = namespaceInode(file.target, "net")) {
      Traces& traces = found[*inode];
      keepFirst(traces.opener, describe(process));
      addFile(traces.openers, "/proc/" + process.id + "/" + file.descriptor);
    }
  }
}

std::string describe(const Traces& traces) {
  if (!traces.name.empty()) {
    return "network namespace " + traces.name;
  }
  if (!traces.resident.empty()) {
    return "the network namespace of " + traces.resident;
  }
  if (!traces.mount.empty()) {
    return "the network namespace mounted at " + traces.mount;
  }
  return "a network namespace that " + traces.opener + " has open";
}

// The files in /proc/PID lead directly to the namespace.
std::vector<std::string> filesOf(const Traces& traces) {
  std::vector<std::string> files = traces.residents;
  files.insert(files.end(), traces.openers.begin(), traces.openers.end());
  return files;
}

}  // namespace

std::vector<NetworkNamespace> findNetworkNamespaces(const std::vector<Process>& processes,
                                                    const MountTable& mounts,
                                                    std::uint64_t ourInode) {
  TraceMap found;
  addMounts(mounts, found);
  for (const Process& process : processes) {
    addProcess(process, found);
  }
  found.erase(ourInode);
  std::vector<NetworkNamespace> namespaces;
  namespaces.push_back({ourInode, true, "our own network namespace", {"/proc/self/ns/net"}});
  for (const auto& [inode, traces] : found) {
    namespaces.push_back({inode, false, describe(traces), filesOf(traces), traces.mounts});
  }
  return namespaces;
}

}  // namespace vfpass::host
