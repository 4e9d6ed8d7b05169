#include "device_xml.hpp"

#include <pugixml.hpp>
#include <sstream>

#include "document.hpp"
#include "our_elements.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

Error badTemplate(const std::string& element, const std::string& reason) {
  return Error("invalid XML template for <" + element + ">: " + reason,
               "compare it with the shipped file in templates/", ExitCode::badInput);
}

// A template that is being filled in.
class Skeleton {
 public:
  Skeleton(const std::string& text, const char* rootName) : rootName_(rootName) {
    scanElements(text);
    const auto result = tree_.load_buffer(text.data(), text.size());
    if (!result || std::string_view(root().name()) != rootName) {
      throw badTemplate(rootName, result ? "wrong root element" : result.description());
    }
  }

  [[nodiscard]] pugi::xml_node root() const { return tree_.document_element(); }

  // A missing element is an error; otherwise its value would silently not reach the guest.
  [[nodiscard]] pugi::xml_node need(const char* path) const {
    const auto node = root().first_element_by_path(path);
    if (!node) {
      throw badTemplate(rootName_, std::string("no ") + path + " element");
    }
    return node;
  }

  void set(const char* path, const char* attribute, const std::string& value) const {
    setAttribute(need(path), attribute, value.c_str());
  }

  // Sets the attribute, or removes `child`, the element that contains it.
  template <typename Value>
  void setOrDrop(const char* child, const char* path, const char* attribute,
                 const std::optional<Value>& value) {
    if (value) {
      set(path, attribute, *value);
    } else {
      root().remove_child(child);
    }
  }

 private:
  std::string rootName_;
  pugi::xml_document tree_;
};

pugi::xml_node writeSealed(pugi::xml_document& tree, const std::vector<Lease>& leases,
                           const SealKey& key, const Containers& containers) {
  auto node = writeMetadata(tree, leases.front().domain, leases, containers);
  if (const std::string seal = sealOf(leases, key); !seal.empty()) {
    setAttribute(node, sealAttribute, seal.c_str());
  }
  return node;
}

std::optional<std::string> partnerOf(const Lease& lease) {
  return isVf(lease) && vfOf(lease).teamingWith
             ? std::optional(standbyAlias(*vfOf(lease).teamingWith))
             : std::nullopt;
}

void fillDevice(Skeleton& skeleton, const Lease& lease) {
  setAttribute(skeleton.root(), "managed", lease.managed ? "yes" : "no");
  skeleton.setOrDrop("driver", "driver", "model",
                     migrates(lease) ? std::optional(vfioDriverOf(lease)) : std::nullopt);
  writePciAddress(skeleton.need("source/address"), lease.device);
  skeleton.setOrDrop("teaming", "teaming", "persistent", partnerOf(lease));
  skeleton.set("alias", "name", deviceAlias(lease));
  writePciAddress(skeleton.need("address"), lease.guest.address);
}

// The QEMU device for the model, as libvirt chooses it.
std::string deviceOf(ControllerModel model) {
  switch (model) {
    case ControllerModel::expanderBus:
      return "pxb-pcie";
    case ControllerModel::rootPort:
      return "pcie-root-port";
    case ControllerModel::upstreamPort:
      return "x3130-upstream";
    case ControllerModel::downstreamPort:
      break;
  }
  return "xio3130-downstream";
}

void setOrRemove(pugi::xml_node node, const char* attribute,
                 const std::optional<std::string>& value) {
  if (value) {
    setAttribute(node, attribute, value->c_str());
  } else {
    node.remove_attribute(attribute);
  }
}

std::string portText(const GuestController& controller) {
  // libvirt numbers a root port by slot and function.
  const bool root = controller.model == ControllerModel::rootPort;
  const unsigned number =
      root ? unsigned{controller.address.slot} << 3U | controller.address.function
           : controller.address.slot;
  std::ostringstream text;
  text << "0x" << std::hex << number;
  return text.str();
}

// libvirt numbers ports by slot, in hexadecimal, and writes chassis and busNr in decimal.
void fillTarget(pugi::xml_node target, const GuestController& controller) {
  const bool expander = controller.model == ControllerModel::expanderBus;
  const bool port = !expander && controller.model != ControllerModel::upstreamPort;
  const auto only = [](bool wanted, const std::string& value) {
    return wanted ? std::optional(value) : std::nullopt;
  };
  setOrRemove(target, "chassis", only(port, std::to_string(controller.index)));
  setOrRemove(target, "port", only(port, portText(controller)));
  setOrRemove(target, "busNr", only(expander, std::to_string(controller.busNumber)));
  setOrRemove(target, "hotplug", only(port && !controller.hotplug, "off"));
  if (controller.node) {
    target.child("node").text().set(*controller.node);
  } else {
    target.remove_child("node");
  }
}

}  // namespace

std::string deviceFragment(const Lease& lease, const Templates& templates,
                           std::string_view indentation) {
  if (isAdopted(lease)) {
    return lease.adoptedElement;
  }
  Skeleton skeleton(isInterface(lease) ? templates.interface : templates.hostdev,
                    isInterface(lease) ? "interface" : "hostdev");
  fillDevice(skeleton, lease);
  if (isInterface(lease)) {
    const auto& [mac, vlan] = std::pair(vfOf(lease).settings.mac, vfOf(lease).settings.vlan);
    skeleton.setOrDrop("mac", "mac", "address", mac ? std::optional(toString(*mac)) : std::nullopt);
    skeleton.setOrDrop(
        "vlan", "vlan/tag", "id",
        vlan && vlan->id != 0 ? std::optional(std::to_string(vlan->id)) : std::nullopt);
  }
  return elementText(skeleton.root(), indentation, pugi::format_attribute_single_quote);
}

std::string portFragment(const Lease& lease, const Templates& templates,
                         std::string_view indentation) {
  const auto& port = lease.guest.port.value();
  Skeleton skeleton(templates.rootPort, "controller");
  setAttribute(skeleton.root(), "index", std::to_string(port.index).c_str());
  skeleton.set("alias", "name", portAlias(lease));
  auto address = skeleton.need("address");
  writePciAddress(address, port.address);
  if (port.multifunction) {
    setAttribute(address, "multifunction", "on");
  } else {
    address.remove_attribute("multifunction");
  }
  return elementText(skeleton.root(), indentation, pugi::format_attribute_single_quote);
}

std::string controllerFragment(const GuestController& controller, const Templates& templates,
                               std::string_view indentation) {
  Skeleton skeleton(templates.controller, "controller");
  setAttribute(skeleton.root(), "index", std::to_string(controller.index).c_str());
  setAttribute(skeleton.root(), "model", std::string(toString(controller.model)).c_str());
  skeleton.set("model", "name", deviceOf(controller.model));
  fillTarget(skeleton.need("target"), controller);
  if (!skeleton.need("target").first_attribute()) {
    skeleton.root().remove_child("target");
  }
  skeleton.set("alias", "name", controllerAlias(controller));
  writePciAddress(skeleton.need("address"), controller.address);
  return elementText(skeleton.root(), indentation, pugi::format_attribute_single_quote);
}

std::string metadataFragment(const std::vector<Lease>& leases, const SealKey& key,
                             const Containers& containers, std::string_view indentation) {
  pugi::xml_document tree;
  const auto node = writeSealed(tree, leases, key, containers);
  // libvirt writes metadata with libxml2, which uses double quotes.
  return elementText(node, indentation, 0);
}

std::string deviceXml(const Lease& lease, const Templates& templates) {
  return deviceFragment(lease, templates, "");
}

std::string metadataXml(const std::vector<Lease>& leases, const SealKey& key) {
  if (leases.empty()) {
    return {};
  }
  pugi::xml_document tree;
  auto node = writeSealed(tree, leases, key, {});
  node.remove_attribute("xmlns:vfpass");
  struct : pugi::xml_tree_walker {
    bool for_each(pugi::xml_node& each) override {
      // Copied, because set_name() would strcpy() the new name over the overlapping old one.
      const std::string name = each.name();
      const auto colon = name.find(':');
      return colon == std::string::npos || each.set_name(name.c_str() + colon + 1);
    }
  } dropPrefixes;
  tree.traverse(dropPrefixes);
  return elementText(node, "", 0);
}

}  // namespace vfpass::domain
