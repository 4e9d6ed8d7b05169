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

// Memory regions come last: there can be very many, and their owner nearly always also has a
// protection domain.
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

int errorOf(const NetlinkAnswer& answer, RdmaResource resource) {
  const int error = answer.error != 0 ? answer.error : dumpError(answer.bytes);
  // Linux before 5.14 does not list contexts; a context in use has a protection domain.
  const bool unlisted = error == EINVAL || error == EOPNOTSUPP;
  return resource == RdmaResource::context && unlisted ? 0 : error;
}

RdmaUse useOf(const Root& root, std::span<const NetlinkAnswer> answers) {
  RdmaUse use;
  std::set<RdmaOwner> owners;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    for (auto& owner : parseRdmaOwners(answers[i].bytes, resources[i])) {
      if (!isIdle(owner, resources[i])) {
        owners.insert(std::move(owner));
      }
    }
    if (const int error = errorOf(answers[i], resources[i]); error != 0 && use.error.empty()) {
      use.error = errnoText(error);
    }
  }
  for (const auto& owner : owners) {
    use.users.push_back({owner.process, describe(root, owner)});
  }
  return use;
}

}  // namespace

std::vector<RdmaUse> readRdmaUse(const Root& root, const std::vector<std::uint32_t>& numbers,
                                 std::chrono::milliseconds deadline) {
  std::vector<NetlinkQuery> queries;
  for (const std::uint32_t number : numbers) {
    for (const RdmaResource resource : resources) {
      queries.push_back({0, NETLINK_RDMA, rdmaResourceQuery(resource, number), true});
    }
  }
  const auto answers = runNetlinkBatch({NetlinkPlace{}}, queries, -1, deadline);
  std::vector<RdmaUse> uses;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    uses.push_back(useOf(root, std::span(answers).subspan(i * resources.size(), resources.size())));
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
