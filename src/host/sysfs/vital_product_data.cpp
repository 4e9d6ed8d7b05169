#include "vfpass/host/vital_product_data.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "helper/guarded_child.hpp"
#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"

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

// A field of the read-only resource is a two-letter keyword, a length byte, and data.
std::string serialField(const std::string& fields) {
  for (std::size_t at = 0; at + headerLength <= fields.size();) {
    const std::size_t length = byteAt(fields, at + 2);
    if (at + headerLength + length > fields.size()) {
      return {};
    }
    if (fields.compare(at, 2, "SN") == 0) {
      const std::string value = fields.substr(at + headerLength, length);
      return printable(trim(value.substr(0, value.find('\0'))));
    }
    at += headerLength + length;
  }
  return {};
}

}  // namespace

std::string findSerial(const ByteReader& read) {
  for (std::size_t offset = 0; offset + headerLength < vpdLimit;) {
    const std::string header = read(offset, headerLength);
    if (header.size() < headerLength) {
      return {};
    }
    const std::size_t tag = byteAt(header, 0);
    const std::size_t length = byteAt(header, 1) | byteAt(header, 2) << 8U;
    offset += headerLength;
    if (tag == readOnlyTag && offset + length <= vpdLimit) {
      return serialField(read(offset, length));
    }
    if (tag != identifierTag) {
      return {};
    }
    offset += length;
  }
  return {};
}

namespace {

// As findSerial(), reads headers and the read-only resource into a copy of the file, in which
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

std::string readSerial(const Root& root, const PciAddress& function) {
  const FileDescriptor file =
      root.open(functionPath(function) + "/vpd", O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) {
    return {};
  }
  const std::string copy =
      root.isLive() ? readVpdGuarded(file.get(), deadlines::serial) : std::string{};
  return findSerial([&](std::size_t offset, std::size_t length) {
    std::string bytes = !root.isLive()         ? readBytes(file.get(), offset, length)
                        : offset < copy.size() ? copy.substr(offset, length)
                                               : std::string{};
    if (root.recording() != nullptr) {
      root.recording()->noteBytes(file.get(), offset, bytes);
    }
    return bytes;
  });
}

}  // namespace vfpass::host
