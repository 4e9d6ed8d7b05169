#pragma once

#include <string>

namespace vfpass::hook {

/// What libvirt asks: `qemu NAME OPERATION SUBOPERATION EXTRA`, with the domain's XML on stdin.
struct Request {
  std::string name;
  std::string operation;
  std::string suboperation;
  std::string xml;
};

/// Reads stdin to its end, at most 16 MiB; throws Error for more.
std::string readXml(int descriptor);

}  // namespace vfpass::hook
