#pragma once

#include <string>

#include "vfpass/error.hpp"

namespace vfpass::hook {

/// The domain XML that libvirt writes to standard input. It has no limit: libvirt indents foreign
/// metadata, so that 4 MiB become 64 (xmlNodeDump, by up to 60 spaces).
struct DomainInput {
  std::string xml;            ///< the first 16 MiB
  bool complete = true;       ///< `xml` is all of it
  bool mayBeManaged = false;  ///< domain::mayBeManaged() of all of it
};

/// Reads the descriptor to its end: libvirt reports a pipe that is closed earlier.
DomainInput readInput(int descriptor);

/// A call of libvirt: `qemu NAME OPERATION SUBOPERATION EXTRA`.
struct Request {
  std::string name;
  std::string operation;
  std::string suboperation;
  DomainInput input;
};

/// The error and its remedy in one line without control characters: libvirt puts the hook's stderr
/// into its own error message.
std::string errorLine(const Error& error);

}  // namespace vfpass::hook
