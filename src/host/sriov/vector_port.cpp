#include <algorithm>
#include <cerrno>

#include "sriov/vf_port.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/pci_capability.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

// Documentation/ABI/testing/sysfs-bus-pci, since Linux 5.13. It can only be written.
constexpr const char* vectorsFile = "/sriov_vf_msix_count";
constexpr std::size_t standardSpace = 256;

}  // namespace

// PCI Express Base Specification 5.0, 7.7.2.2: bits 10:0 of the message control register are the
// number of entries less one.
std::optional<std::uint16_t> readVectors(const Folder& vf) {
  const std::string config = vf.readBytes("config", 0, standardSpace);
  const auto at = findCapability(config, msix);
  const auto control = at ? configWord(config, *at + 2) : std::nullopt;
  return control ? std::optional(static_cast<std::uint16_t>((*control & 0x7ffU) + 1))
                 : std::nullopt;
}

// Reading the file takes the device's lock, which a removal that hangs holds forever.
std::optional<unsigned> readTotalVectors(const Root& root, KernelWriter& writer,
                                         const PciAddress& pf, std::chrono::milliseconds deadline) {
  const std::string path = functionPath(pf) + "/sriov_vf_total_msix";
  if (!root.exists(path)) {
    return 0;
  }
  try {
    const auto number = parseNumber(trim(writer.read(path, pf, deadline)));
    return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

VfTable VectorPort::read() {
  VfTable table = others_.read();
  for (const VfLink& link : readVfLinks(Folder(root_, functionPath(pf_)))) {
    if (const auto vectors = readVectors(Folder(root_, functionPath(link.address)))) {
      table[link.index].msixVectors = vectors;
    }
  }
  return table;
}

// The other attributes first, because a message has those of all VFs. The VFs share the vectors of
// the PF: those that give some back come before those that get more.
Acknowledgement VectorPort::set(const std::vector<VfRequest>& requests) {
  std::vector<VfRequest> others;
  for (VfRequest request : requests) {
    request.settings.msixVectors.reset();
    if (request.settings != VfSettings{}) {
      others.push_back(request);
    }
  }
  Acknowledgement answer = others.empty() ? Acknowledgement{} : others_.set(others);
  const auto links = readVfLinks(Folder(root_, functionPath(pf_)));
  std::vector<VfRequest> ordered = requests;
  std::ranges::stable_partition(ordered, [&](const VfRequest& request) {
    const auto link = std::ranges::find(links, request.index, &VfLink::index);
    return link != links.end() && request.settings.msixVectors &&
           readVectors(Folder(root_, functionPath(link->address))) > request.settings.msixVectors;
  });
  for (const VfRequest& request : ordered) {
    const auto link = std::ranges::find(links, request.index, &VfLink::index);
    if (answer.error == 0 && request.settings.msixVectors) {
      answer = link == links.end() ? Acknowledgement{ENODEV, "no such VF"}
                                   : write(link->address, *request.settings.msixVectors);
    }
  }
  return answer;
}

// A value that the VF has needs no write, which would be refused while a driver is bound.
Acknowledgement VectorPort::write(const PciAddress& vf, std::uint16_t vectors) {
  const std::string path = functionPath(vf) + vectorsFile;
  if (readVectors(Folder(root_, functionPath(vf))) == vectors) {
    return {};
  }
  if (!root_.exists(path)) {
    return {EOPNOTSUPP, "the kernel has no /" + path};
  }
  try {
    writer_.write(path, std::to_string(vectors), vf, deadline_);
  } catch (const WriteError& error) {
    return {error.number(), "writing /" + path};
  }
  return {};
}

}  // namespace vfpass::host
