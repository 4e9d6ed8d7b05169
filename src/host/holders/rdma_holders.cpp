#include "holders/holder_kinds.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <span>
#include <utility>

#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
#include "netlink/rdma_message.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/soft_roce_links.hpp"

namespace vfpass::host {
namespace {

// Contexts come first: every program that uses the device has one. Memory regions come last: there
// can be very many, and their owner nearly always also has a protection domain.
constexpr std::array<RdmaResource, 4> resources{RdmaResource::context, RdmaResource::queuePair,
                                                RdmaResource::protectionDomain,
                                                RdmaResource::memoryRegion};

// Kernel resources of idle devices: ib_core has a management queue pair for each port, IPoIB and
// mlx5_ib (for UMR) have their own, and clients such as ib_srpt keep an unused protection domain.
// The kernel releases them all automatically. IPoIB is in use when its netdev is.
bool isIdle(const RdmaOwner& owner, RdmaResource resource) {
  constexpr std::array<std::string_view, 3> alwaysPresent{"ib_core", "ib_ipoib", "mlx5_ib"};
  const bool ofKernel = owner.process == 0 && !owner.module.empty();
  return ofKernel && (resource != RdmaResource::queuePair ||
                      std::ranges::find(alwaysPresent, owner.module) != alwaysPresent.end());
}

std::string describe(const Root& root, const RdmaOwner& owner) {
  if (owner.process == 0 && owner.module.empty()) {
    return "a process in another PID namespace";
  }
  if (owner.process == 0) {
    return "kernel module " + printable(owner.module.substr(0, 64));
  }
  const std::string process = std::to_string(owner.process);
  const auto name = root.readText("proc/" + process + "/comm", 64);
  return "process " + process + (name ? " (" + printable(*name) + ")" : "");
}

// The owners in the replies to all queries of one device.
struct RdmaReply {
  std::set<RdmaOwner> owners;
  std::string error;  // the first one
};

int errorOf(int exchangeError, int dumpError, RdmaResource resource) {
  const int error = exchangeError != 0 ? exchangeError : dumpError;
  // Linux before 5.14 does not list contexts; a context in use has a protection domain.
  const bool unlisted = error == EINVAL || error == EOPNOTSUPP;
  return resource == RdmaResource::context && unlisted ? 0 : error;
}

// Asks for these resources of the devices whose owners are not known yet.
void addOwners(const std::vector<std::uint32_t>& numbers, std::span<const RdmaResource> wanted,
               std::chrono::milliseconds deadline, std::vector<RdmaReply>& replies) {
  struct Subject {
    std::size_t device;
    RdmaResource resource;
    int dumpError = EBADMSG;  // until the end of the dump
  };
  // One query for each resource of each device whose owners are not known yet.
  std::vector<Subject> subjects;
  std::vector<NetlinkQuery> queries;
  for (std::size_t device = 0; device < numbers.size(); ++device) {
    for (std::size_t i = 0; replies[device].owners.empty() && i < wanted.size(); ++i) {
      subjects.push_back({device, wanted[i]});
      queries.push_back({0, NETLINK_RDMA, rdmaResourceQuery(wanted[i], numbers[device]), true});
    }
  }
  // Owners are kept as they arrive: a program can have millions of resources.
  const auto errors = streamNetlinkBatch(
      {NetlinkPlace{}}, queries, -1, deadline, [&](std::size_t query, std::string_view datagram) {
        Subject& subject = subjects[query];
        for (auto& owner : parseRdmaOwners(datagram, subject.resource)) {
          if (!isIdle(owner, subject.resource)) {
            replies[subject.device].owners.insert(std::move(owner));
          }
        }
        subject.dumpError = dumpError(datagram);
      });
  // A reply that is missing or incomplete may have hidden an owner.
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    RdmaReply& reply = replies[subjects[i].device];
    const int error = errorOf(errors[i], subjects[i].dumpError, subjects[i].resource);
    if (error != 0 && reply.error.empty()) {
      reply.error = errnoText(error);
    }
  }
}

std::vector<std::string> descriptionsOf(const RdmaUse& use) {
  std::vector<std::string> users;
  for (const RdmaUser& user : use.users) {
    users.push_back(user.description);
  }
  return users;
}

RdmaUse useOf(const Root& root, const RdmaReply& reply) {
  RdmaUse use{{}, reply.error};
  for (const auto& owner : reply.owners) {
    use.users.push_back({owner.process, describe(root, owner)});
  }
  return use;
}

}  // namespace

// A program with a context can have millions of the other resources, which need not be read then.
std::vector<RdmaUse> readRdmaUse(const Root& root, const std::vector<std::uint32_t>& numbers,
                                 std::chrono::milliseconds deadline) {
  std::vector<RdmaReply> replies(numbers.size());
  const std::span all(resources);
  addOwners(numbers, all.first(1), deadline, replies);
  addOwners(numbers, all.subspan(1), deadline, replies);
  std::vector<RdmaUse> uses;
  for (const RdmaReply& reply : replies) {
    uses.push_back(useOf(root, reply));
  }
  return uses;
}

std::vector<std::string> rdmaUsers(const Root& root, std::uint32_t number,
                                   std::chrono::milliseconds deadline) {
  const RdmaUse use = readRdmaUse(root, {number}, deadline).front();
  if (use.users.empty() && !use.error.empty()) {
    throw Error("RDMA device " + std::to_string(number) + ": cannot list its users: " + use.error);
  }
  return descriptionsOf(use);
}

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
    return !function.rdma.empty() || !function.netdevs.empty();
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
  return std::ranges::find(function.rdma, link.name, &RdmaDevice::name) != function.rdma.end() ||
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
  std::vector<std::string> users = descriptionsOf(use);
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
        files.push_back({"/dev/infiniband/" + name, readDeviceNumber(root, directory + name)});
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
