#include "vfpass/host/device_identity.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "helper/guarded_child.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/pci_capability.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/host/vital_product_data.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t configLength = 4096;

// Runs in the guarded child: must not allocate.
void copyConfig(int pipe, int file) {
  std::array<char, configLength> bytes{};
  const ssize_t count = ::pread(file, bytes.data(), bytes.size(), 0);
  if (count > 0) {
    writeAll(pipe, bytes.data(), static_cast<std::size_t>(count));
  }
}

// Configuration space is blocked during a reset (pci_cfg_access_lock), and its readers wait
// uninterruptibly (pci_wait_cfg, drivers/pci/access.c).
std::string readConfig(const Root& root, const PciAddress& function,
                       std::chrono::milliseconds timeout) {
  const FileDescriptor file =
      root.open(functionPath(function) + "/config", O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) {
    return {};
  }
  if (!root.isLive()) {
    return readBytes(file.get(), 0, configLength);
  }
  return runGuarded(
             timeout, file.get(), [&file](int pipe) { copyConfig(pipe, file.get()); }, configLength)
      .bytes;
}

std::string hexWord(const Root& root, const std::string& path) {
  const std::string text = root.readText(path).value_or("");
  return text.starts_with("0x") ? text.substr(2) : std::string();
}

// `15b3:101d`
std::string idsOf(const Root& root, const PciAddress& function) {
  const std::string path = functionPath(function);
  return hexWord(root, path + "/vendor") + ":" + hexWord(root, path + "/device");
}

// `serial` and `device-serial` are different numbers. Empty: none can be read.
std::string numberOf(const Root& root, const PciAddress& card,
                     const std::optional<std::string>& serial, std::chrono::milliseconds timeout) {
  if (const std::string number = findSerialNumber(readConfig(root, card, timeout));
      !number.empty()) {
    return " device-serial " + number;
  }
  const std::string known = serial ? *serial : readSerial(root, card);
  return known.empty() ? std::string() : " serial " + printable(known);
}

// The functions of a card share its number (PCI Express Base Specification 5.0, 7.9.3).
std::string nameOfFunction(const Root& root, const PciAddress& card) {
  return idsOf(root, card) + " function " + std::to_string(card.function);
}

}  // namespace

std::string readIdentity(const Root& root, const PciAddress& function,
                         const std::optional<std::string>& serial,
                         std::chrono::milliseconds timeout) {
  const auto pf = readPfOf(root, function);
  const PciAddress card = pf.value_or(function);
  if (!root.readText(functionPath(card) + "/vendor")) {
    return {};
  }
  const std::string number = numberOf(root, card, serial, timeout);
  if (number.empty()) {
    return {};
  }
  const std::string identity = nameOfFunction(root, card) + number;
  if (!pf) {
    return identity;
  }
  const auto vfs = readVfLinks(root, *pf);
  const auto own = std::ranges::find(vfs, function, &VfLink::address);
  return own == vfs.end() ? std::string() : identityOfVf(identity, own->index);
}

std::map<std::string, std::vector<PciAddress>> functionsWithIdentities(
    const Root& root, const std::set<std::string>& identities) {
  std::map<std::string, std::vector<PciAddress>> found;
  const auto add = [&](const std::string& identity, const PciAddress& function) {
    if (identities.contains(identity)) {
      found[identity].push_back(function);
    }
  };
  for (const PciAddress& card : listFunctions(root)) {
    const std::string name = nameOfFunction(root, card);
    const bool isWanted = std::ranges::any_of(
        identities, [&](const std::string& identity) { return identity.starts_with(name + " "); });
    if (!isWanted || readPfOf(root, card)) {
      continue;
    }
    const std::string number = numberOf(root, card, std::nullopt, deadlines::serial);
    if (number.empty()) {
      continue;
    }
    add(name + number, card);
    for (const VfLink& vf : readVfLinks(root, card)) {
      add(identityOfVf(name + number, vf.index), vf.address);
    }
  }
  return found;
}

}  // namespace vfpass::host
