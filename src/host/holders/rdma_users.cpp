#include "vfpass/host/rdma_users.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <span>

#include "netlink/netlink_batch.hpp"
#include "netlink/netlink_dump.hpp"
#include "netlink/rdma_message.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

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

// Asks for these resources of some devices: of those whose owners are not known yet.
void addOwners(const std::vector<std::uint32_t>& numbers, std::span<const RdmaResource> wanted,
               std::chrono::milliseconds deadline, std::vector<RdmaReply>& replies) {
  struct Subject {
    std::size_t device;
    RdmaResource resource;
    int dumpError = EBADMSG;  // until the end of the dump
  };
  std::vector<Subject> subjects;
  std::vector<NetlinkQuery> queries;
  for (std::size_t device = 0; device < numbers.size(); ++device) {
    for (std::size_t i = 0; replies[device].owners.empty() && i < wanted.size(); ++i) {
      subjects.push_back({device, wanted[i]});
      queries.push_back({0, NETLINK_RDMA, rdmaResourceQuery(wanted[i], numbers[device]), true});
    }
  }
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
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    RdmaReply& reply = replies[subjects[i].device];
    const int error = errorOf(errors[i], subjects[i].dumpError, subjects[i].resource);
    if (error != 0 && reply.error.empty()) {
      reply.error = errnoText(error);
    }
  }
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
  std::vector<std::string> users;
  for (const RdmaUser& user : use.users) {
    users.push_back(user.description);
  }
  return users;
}

}  // namespace vfpass::host
