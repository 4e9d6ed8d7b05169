#include <algorithm>
#include <map>
#include <set>

#include "document.hpp"
#include "element_comparison.hpp"
#include "guest_ports.hpp"
#include "our_elements.hpp"
#include "pci_attributes.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

using Lines = std::vector<std::string>;

std::string nameOf(const Lease& lease) {
  return (isVf(lease) ? "VF '" : "PCI function '") + lease.entry + "'";
}

/// The elements of one domain XML, indexed once: a domain can have thousands.
class Elements {
 public:
  explicit Elements(std::string_view xml) : document_(xml) {
    for (const auto device : document_.devices()) {
      if (const auto alias = aliasOf(device); isOurAlias(alias)) {
        ours_.emplace(alias, device);
      }
      const auto host = hostAddressElement(device);
      if (const auto address = host ? readPciAddress(*host) : std::nullopt) {
        ++claims_[*address];
      }
    }
  }

  [[nodiscard]] Lines differencesOf(const Lease& lease) const {
    const auto alias = deviceAlias(lease);
    const auto [first, last] = ours_.equal_range(alias);
    if (first == last) {
      return {"the XML has no device with alias " + alias};
    }
    if (std::next(first) != last) {
      return {"the XML has more than one device with alias " + alias};
    }
    Lines lines = compareElement(first->second, lease);
    if (const auto found = claims_.find(lease.vf); found != claims_.end() && found->second > 1) {
      lines.push_back("the XML claims host device " + toString(lease.vf) + " more than once");
    }
    return lines;
  }

  [[nodiscard]] std::optional<PciAddress> addressOf(const Lease& lease) const {
    const auto found = ours_.find(deviceAlias(lease));
    return found == ours_.end() ? std::nullopt : guestAddressOf(found->second);
  }

  /// `matches` has to accept the only element with this alias.
  template <typename Matches>
  [[nodiscard]] bool hasController(const std::string& alias, Matches matches) const {
    const auto [first, last] = ours_.equal_range(alias);
    return first != last && std::next(first) == last && matches(first->second);
  }

  [[nodiscard]] Lines othersThan(const std::set<std::string, std::less<>>& aliases) const {
    Lines lines;
    for (const auto& [alias, device] : ours_) {
      if (!aliases.contains(alias)) {
        lines.push_back("the XML has a <" + printable(device.name()) + "> with alias " +
                        printable(std::string(alias)) + ", which no lease records");
      }
    }
    return lines;
  }

 private:
  Document document_;
  std::multimap<std::string_view, pugi::xml_node> ours_;
  std::map<PciAddress, std::size_t> claims_;
};

void append(const std::string& subject, const Lines& found, Lines& lines) {
  std::transform(found.begin(), found.end(), std::back_inserter(lines),
                 [&](const std::string& line) { return subject + ": " + line; });
}

Lines differencesOfDevices(const Elements& elements, const std::vector<Lease>& leases) {
  Lines lines;
  for (const auto& lease : leases) {
    append(nameOf(lease), elements.differencesOf(lease), lines);
  }
  return lines;
}

}  // namespace

std::vector<std::string> runningDifferences(std::string_view liveXml,
                                            const std::vector<Lease>& leases) {
  const Elements elements(liveXml);
  std::vector<Lease> placed = leases;
  for (auto& lease : placed) {
    lease.guest.address = elements.addressOf(lease).value_or(lease.guest.address);
  }
  return differencesOfDevices(elements, placed);
}

std::vector<std::string> elementDifferences(std::string_view xml,
                                            const std::vector<Lease>& leases) {
  const Elements elements(xml);
  Lines lines = differencesOfDevices(elements, leases);
  std::set<std::string, std::less<>> aliases;
  const auto check = [&](const std::string& alias, const auto& matches) {
    aliases.insert(alias);
    if (!elements.hasController(alias, matches)) {
      lines.push_back("controller " + alias + ": missing in the XML, or not as the lease records");
    }
  };
  for (const auto& lease : leases) {
    aliases.insert(deviceAlias(lease));
    if (lease.guest.port) {
      check(portAlias(lease), [&](pugi::xml_node each) { return isPortOf(each, lease); });
    }
  }
  for (const auto& controller : controllersOf(leases)) {
    check(controllerAlias(controller),
          [&](pugi::xml_node each) { return isController(each, controller); });
  }
  const Lines others = elements.othersThan(aliases);
  lines.insert(lines.end(), others.begin(), others.end());
  return lines;
}

}  // namespace vfpass::domain
