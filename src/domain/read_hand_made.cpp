#include "vfpass/domain/read_domain_facts.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <pugixml.hpp>

#include "document.hpp"
#include "our_elements.hpp"
#include "qemu_arguments.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain_facts.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {
namespace {

std::string textOf(pugi::xml_node node, const char* attribute) {
  return std::string(attributeText(node, attribute));
}

constexpr std::size_t longestForm = 64;

std::string formOf(pugi::xml_node device) {
  return "<" + std::string(device.name()) + " type='" +
         textOf(device, "type").substr(0, longestForm) + "'>";
}

// Where libvirt itself would find a function; nullopt for an element that names none.
std::optional<HandMadeKind> kindOf(pugi::xml_node device) {
  const std::string_view name = device.name();
  const auto type = attributeText(device, "type");
  if (name == "hostdev") {
    if (attributeText(device, "mode") == "capabilities") {
      return HandMadeKind::capability;
    }
    return type == "pci"    ? HandMadeKind::hostdev
           : type == "mdev" ? HandMadeKind::mediated
                            : HandMadeKind::otherBus;
  }
  if (name == "interface" && type == "hostdev") {
    const bool pci = hostAddressElement(device).has_value();
    return pci ? HandMadeKind::interface : HandMadeKind::otherBus;
  }
  if (name == "interface" && type == "network") {
    return HandMadeKind::fromNetwork;
  }
  if (name == "interface" && type == "direct") {
    return HandMadeKind::macvtap;
  }
  return name == "disk" && type == "nvme" ? std::optional(HandMadeKind::nvmeDisk) : std::nullopt;
}

// libvirt sets one tag of an <interface type='hostdev'> (virHostdevNetConfigReplace).
void readVlan(pugi::xml_node device, HandMadeDevice& read) {
  constexpr unsigned highestId = 4094;
  const auto vlan = device.child("vlan");
  const auto tag = vlan.child("tag");
  if (!vlan) {
    return;
  }
  const auto id = parseNumber(attributeText(tag, "id"));
  if (attributeText(vlan, "trunk") == "yes") {
    read.vlanFault = "its <vlan> is a trunk";
  } else if (tag.next_sibling("tag")) {
    read.vlanFault = "its <vlan> has several tags";
  } else if (!id || *id > highestId) {
    read.vlanFault = "its <vlan> has no tag from 0 to 4094";
  } else {
    read.vlan = Vlan{static_cast<std::uint16_t>(*id), 0, VlanProtocol::dot1q};
  }
}

HandMadeDevice readHandMadeElement(pugi::xml_node device, HandMadeKind kind) {
  HandMadeDevice read;
  read.kind = kind;
  read.form = formOf(device);
  read.alias = aliasOf(device);
  read.ours = isOurAlias(read.alias);
  read.placed = guestAddressOf(device).has_value();
  if (const auto address = hostAddressElement(device)) {
    read.host = readPciAddress(*address);
  }
  // A missing attribute means `no`; libvirt takes nothing but `yes` as yes.
  const auto source = kind == HandMadeKind::nvmeDisk ? device.child("source") : device;
  read.managed = attributeText(source, "managed") == "yes";
  read.mac = parseMacAddress(attributeText(device.child("mac"), "address"));
  readVlan(device, read);
  const auto driver = device.child("driver");
  read.driver = textOf(driver, driver.attribute("model") ? "model" : "name");
  if (const auto teaming = device.child("teaming")) {
    read.teaming = HandMadeTeaming{textOf(teaming, "type"), textOf(teaming, "persistent")};
  }
  read.network = textOf(device.child("source"), "network");
  read.netdev = textOf(device.child("source"), "dev");
  return read;
}

}  // namespace

std::vector<HandMadeDevice> readHandMade(std::string_view xml) {
  const Document document(xml);
  std::vector<HandMadeDevice> devices;
  for (const auto device : document.devices()) {
    if (const auto kind = kindOf(device)) {
      devices.push_back(readHandMadeElement(device, *kind));
    }
  }
  for (const QemuDevice& device : readQemuArguments(document).devices) {
    if (device.isVfio()) {
      HandMadeDevice& added = devices.emplace_back();
      added.kind = HandMadeKind::arguments;
      added.form = "-device " + device.driver.substr(0, longestForm);
      added.alias = argumentsAlias;
      added.host = device.hostFunction();
    }
  }
  return devices;
}

namespace {

/// The XML namespace of a program's metadata, up to the version.
struct ToolNamespace {
  std::string_view begin;
  const char* tool;
};

constexpr std::array toolNamespaces{
    ToolNamespace{"http://openstack.org/xmlns/libvirt/nova/", "OpenStack"},
    ToolNamespace{"http://ovirt.org/vm/", "oVirt"},
    ToolNamespace{"http://kubevirt.io", "KubeVirt"},
    ToolNamespace{"http://opennebula.org/xmlns/libvirt/", "OpenNebula"},
    ToolNamespace{"http://proxmox.com/", "Proxmox VE"},
    ToolNamespace{"https://linuxcontainers.org/incus", "Incus"}};

/// What a program writes into the SMBIOS tables of its domains; older releases write no metadata.
struct ToolInSmbios {
  std::string_view entry;
  std::string_view value;
  const char* tool;
};

// vdsm/constants (SMBIOS_OSNAME, SMBIOS_MANUFACTURER) of oVirt, whose engine writes the placeholder
// OS-NAME: as the product; pkg/virt-config of KubeVirt, whose product is `None`; nova/version.py.
// "Red Hat", the manufacturer of their commercial builds, also names machines of others.
constexpr std::array toolsInSmbios{
    ToolInSmbios{"product", "OpenStack Nova", "OpenStack"},
    ToolInSmbios{"product", "OpenStack Compute", "OpenStack"},
    ToolInSmbios{"product", "CloudStack KVM Hypervisor", "CloudStack"},
    ToolInSmbios{"product", "oVirt Node", "oVirt"},
    ToolInSmbios{"product", "RHEV Hypervisor", "oVirt"},
    ToolInSmbios{"manufacturer", "OpenStack Foundation", "OpenStack"},
    ToolInSmbios{"manufacturer", "oVirt", "oVirt"},
    ToolInSmbios{"manufacturer", "KubeVirt", "KubeVirt"}};

// Adds each program once, with its first namespace.
void addToolsOfNamespaces(pugi::xml_node element, std::vector<ManagingTool>& tools) {
  for (const auto attribute : element.attributes()) {
    const std::string_view name = attribute.name();
    const std::string_view value = attribute.value();
    for (const ToolNamespace& each : toolNamespaces) {
      if ((name == "xmlns" || name.starts_with("xmlns:")) && value.starts_with(each.begin) &&
          std::ranges::find(tools, each.tool, &ManagingTool::name) == tools.end()) {
        tools.push_back({each.tool, "its metadata has the namespace " + std::string(value)});
      }
    }
  }
}

ManagingTool toolOfSmbios(pugi::xml_node domain) {
  for (const ToolInSmbios& each : toolsInSmbios) {
    for (const auto entry : domain.child("sysinfo").child("system").children("entry")) {
      if (attributeText(entry, "name") == each.entry && trim(entry.child_value()) == each.value) {
        return {each.tool, "its <sysinfo> names the " + std::string(each.entry) + " " +
                               std::string(each.value)};
      }
    }
  }
  return {};
}

}  // namespace

ManagingTool managingTool(std::string_view xml) {
  const Document document(xml);
  const auto metadata = document.domain().child("metadata");
  std::vector<ManagingTool> tools;
  addToolsOfNamespaces(document.domain(), tools);
  addToolsOfNamespaces(metadata, tools);
  for (const auto element : metadata.children()) {
    addToolsOfNamespaces(element, tools);
  }
  if (tools.empty()) {
    return toolOfSmbios(document.domain());
  }
  ManagingTool all = tools.front();
  for (auto tool = std::next(tools.begin()); tool != tools.end(); ++tool) {
    all.name += " and " + tool->name;
    all.evidence += ", and " + tool->evidence;
  }
  return all;
}

}  // namespace vfpass::domain
