#include "holders/link_survey.hpp"

#include <fcntl.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "holders/holder_kinds.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/find_holders.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

constexpr int attempts = 4;

std::vector<OwnedLink> withFunctions(const Root& root, std::vector<Link> links) {
  std::vector<OwnedLink> owned;
  owned.reserve(links.size());
  for (Link& link : links) {
    const auto function = functionOfDevice(root, link.parentBus, link.parentName);
    owned.push_back({std::move(link), function});
  }
  return owned;
}

// The first namespace that could not be read, and the number of others.
class BlindSpots {
 public:
  void add(const std::string& description, int error) {
    if (count_++ == 0) {
      first_ = "cannot read the links of " + description + ": " +
               (error == 0 ? "they change faster than they can be read" : errnoText(error));
    }
  }
  [[nodiscard]] std::string text() const {
    return count_ < 2 ? first_ : first_ + " (and " + std::to_string(count_ - 1) + " more)";
  }

 private:
  std::string first_;
  std::size_t count_ = 0;
};

std::vector<NetlinkPlace> placesOf(const std::vector<NetworkNamespace>& namespaces) {
  std::vector<NetlinkPlace> places;
  for (const NetworkNamespace& each : namespaces) {
    places.push_back(each.ours ? NetlinkPlace{each.inode, {}, {}}
                               : NetlinkPlace{each.inode, each.files, each.mounts});
  }
  return places;
}

// The queries for these namespaces, in this order for each: links, then addresses in our
// namespace, or our ID in any other one.
std::vector<NetlinkQuery> surveyQueries(const std::vector<NetworkNamespace>& namespaces,
                                        int ourDescriptor) {
  std::vector<NetlinkQuery> queries;
  for (std::size_t place = 0; place < namespaces.size(); ++place) {
    queries.push_back({place, NETLINK_ROUTE, linkDumpQuery(), true});
    // The dump makes the kernel assign our namespace an ID there (rtnl_fill_link_netnsid).
    queries.push_back(
        namespaces[place].ours
            ? NetlinkQuery{place, NETLINK_ROUTE, addressDumpQuery(), true}
            : NetlinkQuery{place, NETLINK_ROUTE, namespaceIdQuery(ourDescriptor), false});
  }
  return queries;
}

std::vector<NamespaceReply> query(const std::vector<NetworkNamespace>& namespaces,
                                  int ourDescriptor, milliseconds timeout) {
  std::vector<NamespaceReply> replies(namespaces.size());
  const auto errors = streamNetlinkBatch(
      placesOf(namespaces), surveyQueries(namespaces, ourDescriptor), ourDescriptor, timeout,
      [&](std::size_t number, std::string_view datagram) {
        addReply(datagram, number % 2 == 0, namespaces[number / 2].ours, replies[number / 2]);
      });
  for (std::size_t i = 0; i < replies.size(); ++i) {
    replies[i].linksError = errors[2 * i];
    replies[i].otherError = errors[2 * i + 1];
  }
  return replies;
}

/// Reads a group of namespaces, those with an interrupted reply again.
class Survey {
 public:
  Survey(const Root& root, LinkSurvey& survey)
      : root_(root), survey_(survey), ours_(root.open("proc/self/ns/net", O_RDONLY)) {}

  // Returns what could not be read. `perAttempt`: each attempt has this time, not all together.
  std::string read(std::vector<NetworkNamespace> namespaces, milliseconds timeout,
                   bool perAttempt) {
    const Deadline total(timeout);
    std::vector<NamespaceReply> earlier(namespaces.size());
    for (int attempt = 1; !namespaces.empty(); ++attempt) {
      auto replies = query(namespaces, ours_.get(), perAttempt ? timeout : total.left());
      const bool last = attempt == attempts || (!perAttempt && total.over());
      std::vector<NetworkNamespace> interrupted;
      std::vector<NamespaceReply> incomplete;
      for (std::size_t i = 0; i < namespaces.size(); ++i) {
        if (wasInterrupted(replies[i]) || errorOf(replies[i], namespaces[i].ours) != 0) {
          addMissing(earlier[i].links, replies[i].links);
        }
        if (wasInterrupted(replies[i]) && !last) {
          interrupted.push_back(std::move(namespaces[i]));
          incomplete.push_back(std::move(replies[i]));
        } else {
          add(namespaces[i], std::move(replies[i]));
        }
      }
      namespaces = std::move(interrupted);
      earlier = std::move(incomplete);
    }
    return std::exchange(blind_, {}).text();
  }

 private:
  void add(const NetworkNamespace& from, NamespaceReply reply) {
    const int error = errorOf(reply, from.ours);
    if (error == ENOENT && !from.ours) {
      return;
    }
    if (error != 0 || wasInterrupted(reply)) {
      blind_.add(from.description, error);
    }
    survey_.namespaces.push_back({from.description, from.ours,
                                  withFunctions(root_, std::move(reply.links.links)),
                                  std::move(reply.addresses.interfaces), reply.ourId});
  }

  const Root& root_;
  LinkSurvey& survey_;
  FileDescriptor ours_;
  BlindSpots blind_;
};

// The owner of a namespace that no file of a process leads to is that of the mount namespaces in
// which it is mounted. A file that cannot be opened counts as the host's.
bool belongsToHost(const NetworkNamespace& each) {
  for (const std::string& file : each.files) {
    const FileDescriptor opened(openNamespace(file.c_str(), each.inode));
    if (opened || (errno != ENOENT && errno != ESRCH)) {
      return !opened || isOwnedByHost(opened.get());
    }
  }
  return each.mounts.empty() || std::ranges::any_of(each.mounts, &NamespaceMount::trusted);
}

}  // namespace

void addReply(std::string_view datagram, bool isLinks, bool ours, NamespaceReply& reply) {
  if (isLinks) {
    addLinks(datagram, ours ? LinkScope::all : LinkScope::ofDevices, reply.links);
  } else if (ours) {
    addAddresses(datagram, reply.addresses);
  } else {
    reply.ourId = parseNamespaceId(datagram);
  }
}

int errorOf(const NamespaceReply& reply, bool ours) {
  if (reply.linksError != 0 || reply.links.error != 0) {
    return reply.linksError != 0 ? reply.linksError : reply.links.error;
  }
  return reply.otherError != 0 || !ours ? reply.otherError : reply.addresses.error;
}

bool wasInterrupted(const NamespaceReply& reply) {
  return reply.links.interrupted || reply.addresses.interrupted;
}

void addMissing(const LinkDump& earlier, LinkDump& later) {
  std::set<int> known;
  for (const Link& link : later.links) {
    known.insert(link.index);
  }
  for (const Link& link : earlier.links) {
    if (known.insert(link.index).second) {
      later.links.push_back(link);
    }
  }
}

LinkSurvey surveyLinks(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                       milliseconds deadline) {
  std::vector<NetworkNamespace> ofHost;
  std::vector<NetworkNamespace> ofUsers;
  for (const NetworkNamespace& each : namespaces) {
    (each.ours || belongsToHost(each) ? ofHost : ofUsers).push_back(each);
  }
  LinkSurvey survey;
  Survey reader(root, survey);
  survey.blindSpot = reader.read(std::move(ofHost), deadline, true);
  survey.unread = reader.read(std::move(ofUsers), deadline / 2, false);
  return survey;
}

LinkSurvey surveyLinks(const Root& root, const std::vector<Process>& processes,
                       const MountTable& mounts, milliseconds deadline) {
  const auto ours = readNamespaces(root, "self").network;
  if (!ours) {
    return {{}, "cannot identify our own network namespace: cannot read /proc/self/ns/net", {}};
  }
  return surveyLinks(root, findNetworkNamespaces(processes, mounts, *ours), deadline);
}

std::vector<NetdevElsewhere> findNetdevsElsewhere(const Root& root,
                                                  const std::vector<PciAddress>& functions,
                                                  std::chrono::milliseconds deadline) {
  std::vector<NetdevElsewhere> found;
  if (!root.isLive() || functions.empty()) {
    return found;
  }
  const ProcessList list = readProcesses(root);
  const LinkSurvey links =
      surveyLinks(root, list.processes, MountTable(root, list.processes), deadline);
  for (const NamespaceLinks& place : links.namespaces) {
    for (const OwnedLink& each : place.links) {
      if (!place.ours && each.function &&
          std::ranges::find(functions, *each.function) != functions.end()) {
        found.push_back(
            {*each.function, printable(each.link.name.substr(0, 32)), place.description});
      }
    }
  }
  return found;
}

}  // namespace vfpass::host
