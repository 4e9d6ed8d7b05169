#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device_xml.hpp"
#include "document.hpp"
#include "our_elements.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mac_guid_uuid.hpp"

namespace vfpass::domain {
namespace {

std::string attributeWith(const char* name, std::string_view value) {
  return std::string(name) + "='" + printable(std::string(value)) + "'";
}

std::string withUnderscores(std::string text) {
  std::ranges::replace(text, '-', '_');
  return text;
}

bool hasOnly(pugi::xml_node node, const std::set<std::string_view>& attributes) {
  return !node.first_child() &&
         std::all_of(node.attributes_begin(), node.attributes_end(),
                     [&](const auto& each) { return attributes.contains(each.name()); });
}

// The same, also with attributes that `expected` has with the same value.
bool hasOnlyOf(pugi::xml_node node, pugi::xml_node expected,
               const std::set<std::string_view>& attributes) {
  return !node.first_child() &&
         std::all_of(node.attributes_begin(), node.attributes_end(), [&](const auto& each) {
           return attributes.contains(each.name()) ||
                  std::string_view(expected.attribute(each.name()).value()) == each.value();
         });
}

// libvirt writes <driver name='vfio'/> into the XML of a start. The model selects the driver that
// it binds to a managed device (virPCIDeviceBindToStub).
bool isDriverOf(pugi::xml_node driver, const Lease& lease) {
  const auto name = attributeText(driver, "name");
  const std::string model = withUnderscores(std::string(attributeText(driver, "model")));
  return hasOnly(driver, {"name", "model"}) && (name.empty() || name == "vfio") &&
         (model.empty() || model == withUnderscores(vfioDriverOf(lease)));
}

class Comparison {
 public:
  Comparison(pugi::xml_node found, const Lease& lease)
      : lease_(lease), left_(isAdopted(lease) && isOurAlias(aliasOf(found))) {}

  // Nesting is bounded: the found text went through scanElements().
  void compare(pugi::xml_node found, pugi::xml_node expected) {
    compareAttributes(found, expected);
    for (const auto child : expected) {
      if (child.type() == pugi::node_element && !found.child(child.name())) {
        differences.push_back(std::string("the XML has no <") + child.name() +
                              ">, the lease records one");
      }
    }
    std::set<std::string_view> seen;
    for (const auto child : found) {
      if (child.type() == pugi::node_element) {
        compareChild(child, expected.child(child.name()), seen.insert(child.name()).second);
      } else if (child.type() == pugi::node_pcdata && !trim(child.value()).empty()) {
        differences.push_back(std::string("the XML has text in <") + found.name() + ">");
      }
    }
  }

  std::vector<std::string> differences;

 private:
  void compareChild(pugi::xml_node found, pugi::xml_node expected, bool first) {
    const std::string name = "<" + printable(found.name()) + ">";
    if (!first) {
      differences.push_back("the XML has more than one " + name);
    } else if (left_ && std::string_view(found.name()) == "alias") {
      return;
    } else if (expected && std::string_view(found.name()) == "address") {
      compareAddress(found, expected);
    } else if (expected) {
      compare(found, expected);
    } else if (!isTolerated(found)) {
      differences.push_back("the XML has " + name + ", the lease records none");
    }
  }

  [[nodiscard]] bool isTolerated(pugi::xml_node child) const {
    const std::string_view name = child.name();
    return name == "boot" || (name == "acpi" && hasOnly(child, {"index"})) ||
           // A file would be one of the host, which QEMU opens.
           (name == "rom" && hasOnly(child, {"bar", "enabled"})) ||
           (name == "driver" && isDriverOf(child, lease_)) ||
           // libvirt names every device of a running domain.
           (name == "alias" && isAdopted(lease_) && hasOnly(child, {"name"})) ||
           // The name of a tap device, which this kind of interface does not have.
           (name == "target" && isInterface(lease_) && hasOnly(child, {"dev"})) ||
           // libvirt generates a MAC address if the lease sets none.
           (name == "mac" && isInterface(lease_) && hasOnly(child, {"address"}));
  }

  void compareAddress(pugi::xml_node found, pugi::xml_node expected) {
    const bool ofHost = std::string_view(found.parent().name()) == "source";
    const auto [there, recorded] = std::pair(readPciAddress(found), readPciAddress(expected));
    const std::string_view type = attributeText(found, "type");
    const std::string text = there ? toString(*there) : "unset";
    if (!recorded) {
      return;  // an address of another kind than PCI
    }
    if (there != recorded || (!type.empty() && type != "pci")) {
      differences.push_back((ofHost ? "the XML claims host device " + text
                                    : "its guest address in the XML is " + text) +
                            ", the lease records " + toString(*recorded));
    }
    if (!hasOnlyOf(found, expected, {"type", "domain", "bus", "slot", "function"})) {
      differences.push_back(
          std::string("the XML has other attributes than the lease in <address>"));
    }
  }

  void compareAttributes(pugi::xml_node found, pugi::xml_node expected) {
    for (const auto& each : expected.attributes()) {
      const auto text = valueOf(found, each.name());
      if (left_ && std::string_view(each.name()) == "managed") {
        continue;
      }
      if (text != each.value() && !isSameMac(found, text, each.value())) {
        differences.push_back("the XML has " + attributeWith(each.name(), text) + in(found) +
                              ", the lease records " + attributeWith(each.name(), each.value()));
      }
    }
    for (const auto& each : found.attributes()) {
      const bool added = std::string_view(found.name()) == "driver" &&
                         std::string_view(each.name()) == "name" &&
                         std::string_view(each.value()) == "vfio";
      if (!expected.attribute(each.name()) && !added) {
        differences.push_back("the XML has " +
                              attributeWith(printable(each.name()).c_str(), each.value()) +
                              in(found) + ", the lease records none");
      }
    }
  }

  // libvirt omits managed='no' on an <interface> but writes it on a <hostdev>.
  static std::string_view valueOf(pugi::xml_node node, const char* name) {
    const auto attribute = node.attribute(name);
    return !attribute && std::string_view(name) == "managed" ? "no" : attribute.value();
  }

  static bool isSameMac(pugi::xml_node node, std::string_view one, std::string_view other) {
    const auto mac = parseMacAddress(one);
    return std::string_view(node.name()) == "mac" && mac && mac == parseMacAddress(other);
  }

  static std::string in(pugi::xml_node node) {
    const std::string_view name = node.name();
    const bool device = name == "interface" || name == "hostdev";
    return device ? "" : " in <" + printable(node.name()) + ">";
  }

  const Lease& lease_;
  /// `detach --keep` has left the element to the running domain, and its alias and `managed` are
  /// those of the persistent configuration only from the next start on.
  bool left_;
};

}  // namespace

std::vector<std::string> compareElement(pugi::xml_node found, const Lease& lease) {
  pugi::xml_document tree;
  const std::string text = deviceFragment(lease, builtInTemplates(), "");
  tree.load_buffer(text.data(), text.size());
  const auto expected = tree.document_element();
  if (std::string_view(found.name()) != expected.name()) {
    return {"the XML has <" + printable(found.name()) + ">, the lease records <" + expected.name() +
            ">"};
  }
  Comparison comparison(found, lease);
  comparison.compare(found, expected);
  return comparison.differences;
}

namespace {

using Lines = std::vector<std::string>;

std::string nameOf(const Lease& lease) {
  return (isVf(lease) ? "VF '" : "PCI function '") + lease.entry + "'";
}

/// The elements of one domain XML, indexed once: a domain can have thousands. In a running one,
/// an adopted device can have an alias of ours (runningHostElements()).
class DeviceElements {
 public:
  explicit DeviceElements(std::string_view xml, bool running = false) : document_(xml) {
    for (const auto device : document_.devices()) {
      const bool ours = isOurAlias(aliasOf(device));
      if (ours) {
        ours_.emplace(aliasOf(device), device);
      }
      const auto host = hostAddressElement(device);
      if (const auto address = host ? readPciAddress(*host) : std::nullopt) {
        ++claims_[*address];
        if (!ours || running) {
          others_.emplace(*address, device);
        }
      }
    }
  }

  [[nodiscard]] Lines differencesOf(const Lease& lease) const {
    Lines lines;
    if (isAdopted(lease)) {
      const auto found = others_.find(lease.device);
      if (found == others_.end()) {
        return {"the XML has no element for host device " + toString(lease.device)};
      }
      lines = compareElement(found->second, lease);
    } else {
      const auto alias = deviceAlias(lease);
      const auto [first, last] = ours_.equal_range(alias);
      if (first == last) {
        return {"the XML has no device with alias " + alias};
      }
      if (std::next(first) != last) {
        return {"the XML has more than one device with alias " + alias};
      }
      lines = compareElement(first->second, lease);
    }
    if (const auto found = claims_.find(lease.device);
        found != claims_.end() && found->second > 1) {
      lines.push_back("the XML claims host device " + toString(lease.device) + " more than once");
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
  std::map<PciAddress, pugi::xml_node> others_;  ///< that an adopted lease can be for
  std::map<PciAddress, std::size_t> claims_;
};

void append(const std::string& subject, const Lines& found, Lines& lines) {
  std::ranges::transform(found, std::back_inserter(lines),
                         [&](const std::string& line) { return subject + ": " + line; });
}

Lines differencesOfDevices(const DeviceElements& elements, const std::vector<Lease>& leases) {
  Lines lines;
  for (const auto& lease : leases) {
    append(nameOf(lease), elements.differencesOf(lease), lines);
  }
  return lines;
}

}  // namespace

std::vector<std::string> runningDifferences(std::string_view liveXml,
                                            const std::vector<Lease>& leases) {
  const DeviceElements elements(liveXml, true);
  std::vector<Lease> placed = leases;
  for (auto& lease : placed) {
    lease.guest.address = elements.addressOf(lease).value_or(lease.guest.address);
  }
  return differencesOfDevices(elements, placed);
}

std::vector<std::string> elementDifferences(std::string_view xml,
                                            const std::vector<Lease>& leases) {
  const DeviceElements elements(xml);
  Lines lines = differencesOfDevices(elements, leases);
  std::set<std::string, std::less<>> aliases;
  const auto check = [&](const std::string& alias, const auto& matches) {
    aliases.insert(alias);
    if (!elements.hasController(alias, matches)) {
      lines.push_back("controller " + alias + ": missing in the XML, or not as the lease records");
    }
  };
  for (const auto& lease : leases) {
    if (!isAdopted(lease)) {
      aliases.insert(deviceAlias(lease));
    }
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
