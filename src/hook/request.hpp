#pragma once

#include <string>

namespace vfpass::hook {

/// A call of libvirt: `qemu NAME OPERATION SUBOPERATION EXTRA`, with the domain XML on stdin.
struct Request {
  std::string name;
  std::string operation;
  std::string suboperation;
  std::string xml;
};

/// Reads the descriptor to its end. Throws Error for more than 16 MiB.
std::string readXml(int descriptor);

}  // namespace vfpass::hook
