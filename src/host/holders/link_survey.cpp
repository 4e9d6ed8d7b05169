#include "holders/link_survey.hpp"

#include <fcntl.h>
#include <linux/netlink.h>

#include <cerrno>

#include "holders/function_facts.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

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
    if (count_ == 0) {
      first_ = "cannot read the links of " + description + ": " + errnoText(error);
    }
    ++count_;
  }
  [[nodiscard]] std::string text() const {
    return count_ < 2 ? first_ : first_ + " (and " + std::to_string(count_ - 1) + " more)";
  }

 private:
  std::string first_;
  std::size_t count_ = 0;
};

// The error of the exchange, or else the kernel's.
int errorOf(const NetlinkAnswer& answer, int dump) {
  return answer.error != 0 ? answer.error : dump;
}

}  // namespace

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

LinkSurvey readSurvey(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                      const std::vector<NetlinkAnswer>& answers, bool& interrupted) {
  LinkSurvey survey;
  BlindSpots blind;
  interrupted = false;
  for (std::size_t i = 0; i < namespaces.size(); ++i) {
    const NetlinkAnswer& first = answers[2 * i];
    const NetlinkAnswer& second = answers[2 * i + 1];
    LinkDump dump = parseLinkDump(first.bytes);
    AddressDump addresses;
    if (namespaces[i].ours) {
      addresses = parseAddressDump(second.bytes);
    }
    interrupted = interrupted || dump.interrupted || addresses.interrupted;
    int error = errorOf(first, dump.error);
    if (error == 0) {
      error = errorOf(second, addresses.error);
    }
    if (error == ENOENT && !namespaces[i].ours) {
      continue;  // the namespace is gone, and its devices are gone or back in the initial one
    }
    if (error != 0) {
      blind.add(namespaces[i].description, error);
    }
    survey.namespaces.push_back(
        {namespaces[i].description, namespaces[i].ours, withFunctions(root, std::move(dump.links)),
         std::move(addresses.interfaces),
         namespaces[i].ours ? std::nullopt : parseNamespaceId(second.bytes)});
  }
  survey.blindSpot = blind.text();
  return survey;
}

LinkSurvey surveyLinks(const Root& root, const std::vector<NetworkNamespace>& namespaces,
                       std::chrono::milliseconds deadline) {
  const FileDescriptor ours = root.open("proc/self/ns/net", O_RDONLY);
  std::vector<NetlinkPlace> places;
  for (const NetworkNamespace& each : namespaces) {
    places.push_back({each.inode, each.ours ? std::vector<std::string>{} : each.files});
  }
  const auto queries = surveyQueries(namespaces, ours.get());
  bool interrupted = true;
  LinkSurvey survey;
  for (int attempt = 0; attempt < attempts && interrupted; ++attempt) {
    survey = readSurvey(root, namespaces, runNetlinkBatch(places, queries, ours.get(), deadline),
                        interrupted);
  }
  if (interrupted && survey.blindSpot.empty()) {
    survey.blindSpot = "the host's network devices change faster than they can be read";
  }
  return survey;
}

}  // namespace vfpass::host
