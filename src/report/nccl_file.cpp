#include "nccl_file.hpp"

#include <algorithm>
#include <ostream>

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

void attribute(std::ostream& out, const std::string& name, const std::string& value) {
  out << ' ' << name << "=\"" << plain(value) << '"';
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

void writeDevice(std::ostream& out, const NcclDevice& device, const std::string& indent) {
  out << indent << "<pci";
  attribute(out, "busid", toString(device.address));
  attribute(out, "class", "0x" + hexText(device.classCode, 6));
  for (const auto& [name, number] : device.identity) {
    attribute(out, name, "0x" + hexText(number, 4));
  }
  if (device.link.speed != 0 && device.link.width != 0) {  // without them, NCCL reads sysfs
    attribute(out, "link_speed", speedText(device.link.speed));
    attribute(out, "link_width", std::to_string(device.link.width));
  }
  if (device.below.empty()) {
    out << "/>\n";
    return;
  }
  out << ">\n";
  for (const NcclDevice& inner : device.below) {
    writeDevice(out, inner, indent + "  ");
  }
  out << indent << "</pci>\n";
}

}  // namespace

void writeNcclFile(std::ostream& out, const Processors& processors,
                   const std::vector<NcclCpu>& cpus) {
  requireRoom(cpus);
  out << "<system version=\"1\">\n";
  for (const NcclCpu& cpu : cpus) {
    out << "  <cpu";
    attribute(out, "numaid", std::to_string(cpu.node));
    attribute(out, "affinity", cpu.affinity);
    attribute(out, "arch", processors.architecture);
    attribute(out, "vendor", processors.vendor);
    attribute(out, "familyid", std::to_string(ncclFamily(processors)));
    attribute(out, "modelid", std::to_string(processors.model));
    out << ">\n";
    for (const NcclDevice& device : cpu.below) {
      writeDevice(out, device, "    ");
    }
    out << "  </cpu>\n";
  }
  out << "</system>\n";
}

}  // namespace vfpass::report
