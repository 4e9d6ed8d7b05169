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
std::string readConfig(const Root& root, const PciAddress& function) {
  const FileDescriptor file =
      root.open(functionPath(function) + "/config", O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) {
    return {};
  }
  if (!root.isLive()) {
    return readBytes(file.get(), 0, configLength);
  }
  return runGuarded(
             deadlines::serial, file.get(), [&file](int pipe) { copyConfig(pipe, file.get()); },
             configLength)
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
                     const std::optional<std::string>& serial) {
  if (const std::string number = findSerialNumber(readConfig(root, card)); !number.empty()) {
    return " device-serial " + number;
  }
  const std::string known = serial ? *serial : readSerial(root, card);
  return known.empty() ? std::string() : " serial " + printable(known);
}

// The functions of a card share its number (PCI Express Base Specification 5.0, 7.9.3).
std::string nameOfFunction(const Root& root, const PciAddress& card) {
  return idsOf(root, card) + " function " + std::to_string(card.function);
}

std::string nameOfVf(const std::string& card, const VfLink& vf) {
  return card + " vf " + std::to_string(vf.index);
}

}  // namespace

std::string readIdentity(const Root& root, const PciAddress& function,
                         const std::optional<std::string>& serial) {
  const auto pf = readPfOf(root, function);
  const PciAddress card = pf.value_or(function);
  std::string name = nameOfFunction(root, card);
  if (pf) {
    const auto vfs = readVfLinks(root, *pf);
    const auto own = std::ranges::find(vfs, function, &VfLink::address);
    if (own == vfs.end()) {
      return {};
    }
    name = nameOfVf(name, *own);
  }
  const std::string number = numberOf(root, card, serial);
  return number.empty() ? std::string() : name + number;
}

std::vector<PciAddress> functionsWithIdentity(const Root& root, const std::string& identity) {
  std::vector<PciAddress> found;
  for (const PciAddress& card : listFunctions(root)) {
    const std::string name = nameOfFunction(root, card);
    if (!identity.starts_with(name + " ") || readPfOf(root, card)) {
      continue;
    }
    const std::string number = numberOf(root, card, std::nullopt);
    if (number.empty()) {
      continue;
    }
    if (identity == name + number) {
      found.push_back(card);
      continue;
    }
    for (const VfLink& vf : readVfLinks(root, card)) {
      if (identity == nameOfVf(name, vf) + number) {
        found.push_back(vf.address);
      }
    }
  }
  return found;
}

}  // namespace vfpass::host
