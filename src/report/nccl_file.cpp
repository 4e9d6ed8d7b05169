#include "nccl_file.hpp"

#include <algorithm>
#include <ostream>
#include <pugixml.hpp>

#include "topology_words.hpp"
#include "vfpass/error.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t maxNodes = 256;       // NCCL_TOPO_XML_MAX_NODES of NCCL 2.28
constexpr std::size_t maxTextLength = 255;  // of an attribute value

// Allow-listed characters: NCCL's parser does not unescape.
std::string plain(std::string text) {
  std::erase_if(text, [](char c) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return !word && std::string_view(" ,.:/_-").find(c) == std::string_view::npos;
  });
  return text.substr(0, maxTextLength);
}

void appendValue(pugi::xml_node element, const std::string& name, const std::string& value) {
  element.append_attribute(name.c_str()).set_value(plain(value).c_str());
}

// The line break and indentation before the next tag. pugixml's own formatting writes ` />`, whose
// space NCCL's parser reads as the beginning of another attribute; only its raw format does not.
void breakLine(pugi::xml_node element, std::size_t depth) {
  element.append_child(pugi::node_pcdata).set_value(("\n" + std::string(2 * depth, ' ')).c_str());
}

// In NCCL's format: `32.0 GT/s PCIe`.
std::string speedText(unsigned speed) {
  return std::to_string(speed / 1000) + "." + std::to_string(speed % 1000 / 100) + " GT/s PCIe";
}

// NCCL computes the family from CPUID as base family plus sixteen times the extended family; the
// kernel adds both, and a base family below 15 has no extended family. So AMD's family 25 is 175
// for NCCL.
unsigned ncclFamily(const Processors& processors) {
  constexpr unsigned extendedFrom = 15;
  const bool extended = processors.architecture == "x86_64" && processors.family > extendedFrom;
  return extended ? extendedFrom + (processors.family - extendedFrom) * 16 : processors.family;
}

std::size_t countNodes(const std::vector<NcclDevice>& devices) {
  std::size_t count = devices.size();
  for (const NcclDevice& device : devices) {
    count += countNodes(device.below);
  }
  return count;
}

void requireRoom(const std::vector<NcclCpu>& cpus) {
  std::size_t count = 1 + cpus.size();
  for (const NcclCpu& cpu : cpus) {
    count += countNodes(cpu.below);
  }
  if (count > maxNodes) {
    throw Error("NCCL topology file: " + std::to_string(count) +
                    " nodes on this host exceed NCCL's limit of " + std::to_string(maxNodes),
                "use `--vm` to write the file of one guest");
  }
}

void appendDevices(pugi::xml_node parent, const std::vector<NcclDevice>& devices,
                   std::size_t depth);

void appendDevice(pugi::xml_node parent, const NcclDevice& device, std::size_t depth) {
  breakLine(parent, depth);
  auto element = parent.append_child("pci");
  appendValue(element, "busid", toString(device.address));
  appendValue(element, "class", "0x" + hexText(device.classCode, 6));
  for (const auto& [name, number] : device.identity) {
    appendValue(element, name, "0x" + hexText(number, 4));
  }
  if (device.link.speed != 0 && device.link.width != 0) {  // without them, NCCL reads sysfs
    appendValue(element, "link_speed", speedText(device.link.speed));
    appendValue(element, "link_width", std::to_string(device.link.width));
  }
  if (!device.below.empty()) {
    appendDevices(element, device.below, depth);
  }
}

// The devices are one level deeper than their parent, whose end tag gets a line of its own.
void appendDevices(pugi::xml_node parent, const std::vector<NcclDevice>& devices,
                   std::size_t depth) {
  for (const NcclDevice& device : devices) {
    appendDevice(parent, device, depth + 1);
  }
  breakLine(parent, depth);
}

void appendCpu(pugi::xml_node system, const Processors& processors, const NcclCpu& cpu) {
  breakLine(system, 1);
  auto element = system.append_child("cpu");
  appendValue(element, "numaid", std::to_string(cpu.node));
  appendValue(element, "affinity", cpu.affinity);
  appendValue(element, "arch", processors.architecture);
  appendValue(element, "vendor", processors.vendor);
  appendValue(element, "familyid", std::to_string(ncclFamily(processors)));
  appendValue(element, "modelid", std::to_string(processors.model));
  appendDevices(element, cpu.below, 1);
}

}  // namespace

void writeNcclFile(std::ostream& out, const Processors& processors,
                   const std::vector<NcclCpu>& cpus) {
  requireRoom(cpus);
  pugi::xml_document document;
  auto system = document.append_child("system");
  appendValue(system, "version", "1");
  for (const NcclCpu& cpu : cpus) {
    appendCpu(system, processors, cpu);
  }
  breakLine(system, 0);
  document.save(out, "", pugi::format_raw | pugi::format_no_declaration);
  out << '\n';
}

}  // namespace vfpass::report
