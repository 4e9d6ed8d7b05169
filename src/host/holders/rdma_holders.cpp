#include "holders/rdma_holders.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/rdma_users.hpp"
#include "vfpass/host/soft_roce_links.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t userLimit = 4;

// An RDMA device through which one of the functions can be used.
struct Candidate {
  std::size_t function = 0;  // its index
  std::string device;
  std::uint32_t number = 0;
};

std::string shown(const std::string& device) { return printable(device.substr(0, 64)); }

Holder unknownHolder(const PciAddress& function, const std::string& device,
                     const std::string& reason) {
  return {HolderKind::unknown, function,
          "cannot tell who uses its RDMA device " + shown(device) +
              (reason.empty() ? "" : ": " + reason),
          "run as root on the host itself, or accept it with `allow: [unknown-holder]` in the "
          "mapping if nothing uses the device",
          std::nullopt};
}

struct RdmaLinks {
  std::vector<RdmaLink> links;
  std::string error;  // the reason why the links have no numbers
};

RdmaLinks readLinks(const Root& root, const std::vector<FunctionFacts>& functions,
                    milliseconds deadline) {
  const bool possible = std::ranges::any_of(functions, [](const FunctionFacts& function) {
    return !function.rdmaDevices.empty() || !function.netdevs.empty();
  });
  if (!possible) {
    return {};
  }
  try {
    return {readRdmaLinks(root, deadline), {}};
  } catch (const Error& error) {
    return {readRdmaLinks(root), error.what()};
  }
}

bool isOf(const RdmaLink& link, const FunctionFacts& function) {
  return std::ranges::find(function.rdmaDevices, link.name) != function.rdmaDevices.end() ||
         (link.softRoce && std::ranges::find(function.netdevs, link.netdev, &Netdev::name) !=
                               function.netdevs.end());
}

// A device without a number was renamed or removed between the two queries.
std::vector<Candidate> findCandidates(const std::vector<FunctionFacts>& functions,
                                      const RdmaLinks& found, std::vector<Holder>& holders) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    for (const RdmaLink& link : found.links) {
      if (!isOf(link, functions[i])) {
        continue;
      }
      if (link.number) {
        candidates.push_back({i, link.name, *link.number});
      } else {
        holders.push_back(unknownHolder(functions[i].address, link.name, found.error));
      }
    }
  }
  return candidates;
}

std::string phrase(const std::vector<std::string>& users, const std::string& device) {
  const bool one = users.size() == 1;
  const std::size_t shownUsers = std::min(users.size(), userLimit);
  std::string text =
      join({users.begin(), users.begin() + static_cast<std::ptrdiff_t>(shownUsers)}, ", ");
  if (shownUsers < users.size()) {
    text += " and " + std::to_string(users.size() - shownUsers) + " more";
  }
  return text + (one ? " uses" : " use") + " its RDMA device " + shown(device);
}

void addUse(const Root& root, const Candidate& candidate, const PciAddress& function,
            const RdmaUse& use, const std::vector<Process>& processes,
            std::vector<Holder>& holders) {
  std::vector<std::string> users;
  for (const RdmaUser& user : use.users) {
    users.push_back(user.description);
  }
  // Netlink reports neither files that are merely open, nor opensm.
  for (const Process& process : processesWithDeviceFiles(root, candidate.device, processes)) {
    if (std::ranges::none_of(use.users, [&](const RdmaUser& user) {
          return std::to_string(user.process) == process.id;
        })) {
      users.push_back(describe(process));
    }
  }
  if (!users.empty()) {
    holders.push_back({HolderKind::rdma, function, phrase(users, candidate.device),
                       "stop the programs that use the RDMA device", std::nullopt});
  } else if (!use.error.empty()) {
    holders.push_back(unknownHolder(function, candidate.device, use.error));
  }
}

}  // namespace

std::vector<Process> processesWithDeviceFiles(const Root& root, const std::string& device,
                                              const std::vector<Process>& processes) {
  std::vector<DeviceFile> files;
  for (const char* directory : {"sys/class/infiniband_verbs/", "sys/class/infiniband_mad/"}) {
    for (const std::string& name : root.list(directory)) {
      if (root.readText(directory + name + "/ibdev", 64) == device) {
        files.push_back({"/dev/infiniband/" + name,
                         parseDeviceNumber(root.readText(directory + name + "/dev").value_or(""))});
      }
    }
  }
  std::vector<Process> found;
  for (const Process& process : processes) {
    if (hasOpen(process, files)) {
      found.push_back(process);
    }
  }
  return found;
}

std::vector<Holder> rdmaHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                const std::vector<Process>& processes, milliseconds deadline) {
  std::vector<Holder> holders;
  const RdmaLinks links = readLinks(root, functions, deadline);
  const auto candidates = findCandidates(functions, links, holders);
  std::vector<std::uint32_t> numbers;
  for (const Candidate& candidate : candidates) {
    numbers.push_back(candidate.number);
  }
  const auto uses = readRdmaUse(root, numbers, deadline);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    addUse(root, candidates[i], functions[candidates[i].function].address, uses[i], processes,
           holders);
  }
  return holders;
}

}  // namespace vfpass::host
