#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "sriov/vf_port.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"

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

}  // namespace vfpass::host
