#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "sriov/vf_port.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

// The firmware's names for a VF's link state, as used in these files.
using Policy = std::pair<LinkState, std::string_view>;
constexpr std::array<Policy, 3> policies{
    {{LinkState::automatic, "Follow"}, {LinkState::enable, "Up"}, {LinkState::disable, "Down"}}};

std::string directoryOf(const PciAddress& pf) { return functionPath(pf) + "/sriov"; }

// Zero means never set: not observable, as over netlink.
std::optional<Guid> readGuid(const Root& root, const std::string& file) {
  const auto guid = parseGuid(root.readText(file).value_or(""));
  return guid && guid->value != 0 ? guid : std::nullopt;
}

std::optional<LinkState> readPolicy(const Root& root, const std::string& file) {
  const std::string text = root.readText(file).value_or("");
  const auto* const found = std::ranges::find(policies, text, &Policy::second);
  return found == policies.end() ? std::nullopt : std::optional(found->first);
}

std::string policyOf(LinkState state) {
  return std::string(std::ranges::find(policies, state, &Policy::first)->second);
}

// File name and text for a single attribute; empty where there is no file for it.
std::pair<std::string, std::string> fileFor(const VfSettings& settings) {
  const auto attributes = differingAttributes(settings, {});
  if (attributes.size() != 1) {
    return {};
  }
  switch (attributes.front()) {
    case Attribute::nodeGuid:
      return {"node", toString(*settings.nodeGuid)};
    case Attribute::portGuid:
      return {"port", toString(*settings.portGuid)};
    case Attribute::linkState:
      return {"policy", policyOf(*settings.linkState)};
    default:
      return {};
  }
}

}  // namespace

void readOfedFiles(const Root& root, const PciAddress& pf, VfTable& table) {
  for (const std::string& name : root.list(directoryOf(pf))) {
    const auto index = parseNumber(name);
    const std::string directory = directoryOf(pf) + "/" + name + "/";
    if (!index || *index > 65535) {
      continue;
    }
    VfSettings found;
    found.linkState = readPolicy(root, directory + "policy");
    found.nodeGuid = readGuid(root, directory + "node");
    found.portGuid = readGuid(root, directory + "port");
    if (found == VfSettings{}) {
      continue;
    }
    VfSettings& settings = table[static_cast<unsigned>(*index)];
    settings = firstOf(settings, found);
  }
}

VfTable OfedPort::read() {
  VfTable table = netlink_ == nullptr ? VfTable{} : netlink_->read();
  readOfedFiles(root_, pf_, table);
  return table;
}

// Handles one attribute at a time: for several, netlink does not report which one was refused, and
// the caller then sends each one alone.
Acknowledgement OfedPort::set(const std::vector<VfRequest>& requests) {
  const Acknowledgement answer = netlink_ == nullptr
                                     ? Acknowledgement{EOPNOTSUPP, "no IPoIB netdev"}
                                     : netlink_->set(requests);
  if (answer.error != EOPNOTSUPP || requests.size() != 1) {
    return answer;
  }
  const auto [file, text] = fileFor(requests.front().settings);
  const std::string path =
      directoryOf(pf_) + "/" + std::to_string(requests.front().index) + "/" + file;
  if (file.empty() || !root_.exists(path)) {
    return answer;
  }
  try {
    writer_.write(path, text, pf_, deadline_);
  } catch (const WriteError& error) {
    return {error.number(), "writing /" + path};
  }
  return {};
}

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
  std::stable_partition(ordered.begin(), ordered.end(), [&](const VfRequest& request) {
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
