#include "vfpass/host/device_identity.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "helper/guarded_child.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/mlx5_firmware.hpp"

namespace vfpass::host {
namespace {

// PCI Local Bus Specification 3.0, appendix I: a large resource is a tag, a 16-bit length, and
// data.
constexpr unsigned char identifierTag = 0x82;
constexpr unsigned char readOnlyTag = 0x90;
constexpr std::size_t headerLength = 3;
constexpr std::size_t vpdLimit = 4096;

std::size_t byteAt(const std::string& bytes, std::size_t position) {
  return static_cast<unsigned char>(bytes[position]);
}

// The value of `name` in a list such as `MLX:MN=MLNX:SMDL=SW_MNG`; empty if it has none.
std::string listed(std::string_view list, std::string_view name) {
  for (std::size_t start = 0; start < list.size();) {
    const std::size_t end = std::min(list.find(':', start), list.size());
    const std::string_view part = list.substr(start, end - start);
    if (part.starts_with(name) && part.substr(name.size()).starts_with('=')) {
      return std::string(trim(part.substr(name.size() + 1)));
    }
    start = end + 1;
  }
  return {};
}

// The first of each keyword counts. V0 to VZ are the vendor's.
void takeField(std::string_view keyword, std::string_view value, VitalProductData& data) {
  value = value.substr(0, value.find('\0'));
  if (keyword == "SN" && data.serial.empty()) {
    data.serial = printable(trim(value));
  } else if (keyword.starts_with('V')) {
    if (keyword == "V3" && data.card.empty()) {
      data.card = printable(trim(value));
    }
    if (data.subModel.empty()) {
      data.subModel = printable(listed(value, "SMDL"));
    }
  }
}

// A field of the read-only resource is a two-letter keyword, a length byte, and data.
VitalProductData parseFields(std::string_view fields) {
  VitalProductData data;
  for (std::size_t at = 0; at + headerLength <= fields.size();) {
    const std::size_t length = static_cast<unsigned char>(fields[at + 2]);
    if (at + headerLength + length > fields.size()) {
      break;
    }
    takeField(fields.substr(at, 2), fields.substr(at + headerLength, length), data);
    at += headerLength + length;
  }
  return data;
}

}  // namespace

bool managesNvlink(const VitalProductData& data, std::uint16_t vendor) {
  return vendor == mellanox && data.subModel == "SW_MNG";
}

VitalProductData findVpd(const ByteReader& read) {
  for (std::size_t offset = 0; offset + headerLength < vpdLimit;) {
    const std::string header = read(offset, headerLength);
    if (header.size() < headerLength) {
      return {};
    }
    const std::size_t tag = byteAt(header, 0);
    const std::size_t length = byteAt(header, 1) | byteAt(header, 2) << 8U;
    offset += headerLength;
    if (tag == readOnlyTag && offset + length <= vpdLimit) {
      return parseFields(read(offset, length));
    }
    if (tag != identifierTag) {
      return {};
    }
    offset += length;
  }
  return {};
}

namespace {

// As findVpd(), reads headers and the read-only resource into a copy of the file, in which
// everything else is zero. Runs in the guarded child: must not allocate.
void copyFields(int pipe, int file) {
  std::array<unsigned char, vpdLimit> bytes{};
  std::size_t end = 0;
  const auto read = [&](std::size_t offset, std::size_t length) {
    const ssize_t count = offset + length > bytes.size()
                              ? -1
                              : ::pread(file, &bytes[offset], length, static_cast<off_t>(offset));
    end = count > 0 ? offset + static_cast<std::size_t>(count) : end;
    return count == static_cast<ssize_t>(length);
  };
  for (std::size_t offset = 0; read(offset, headerLength);) {
    const unsigned char tag = bytes[offset];
    const std::size_t length = bytes[offset + 1] | static_cast<std::size_t>(bytes[offset + 2])
                                                       << 8U;
    offset += headerLength;
    if (tag != identifierTag) {
      static_cast<void>(tag == readOnlyTag && read(offset, length));
      break;
    }
    offset += length;
  }
  writeAll(pipe, bytes.data(), end);
}

}  // namespace

std::string readVpdGuarded(int file, std::chrono::milliseconds deadline) {
  const auto reply = runGuarded(
      deadline, file, [file](int pipe) { copyFields(pipe, file); }, vpdLimit);
  return reply.finished ? reply.bytes : std::string{};
}

VitalProductData readVpd(const Root& root, const PciAddress& function) {
  const FileDescriptor file =
      root.open(functionPath(function) + "/vpd", O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) {
    return {};
  }
  const std::string copy =
      root.isLive() ? readVpdGuarded(file.get(), deadlines::serial) : std::string{};
  return findVpd([&](std::size_t offset, std::size_t length) {
    std::string bytes = !root.isLive()         ? readBytes(file.get(), offset, length)
                        : offset < copy.size() ? copy.substr(offset, length)
                                               : std::string{};
    if (root.recording() != nullptr) {
      root.recording()->noteBytes(file.get(), offset, bytes);
    }
    return bytes;
  });
}

std::string readSerial(const Root& root, const PciAddress& function) {
  return readVpd(root, function).serial;
}

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
