#include "readers.hpp"

namespace vfpass::config {

std::optional<PciAddress> readPciAddress(Node* node, ProblemList& problems) {
  const auto text = textOf(node);
  if (!text) {
    return std::nullopt;
  }
  const auto address = parsePciAddress(*text);
  if (!address) {
    problems.refuse(*node, "expected a PCI address, found " + describe(*node));
  }
  return address;
}

std::optional<PfSelector> readPfSelector(Node* node, ProblemList& problems) {
  if (node == nullptr || node->refused) {
    return std::nullopt;
  }
  PfSelector selector;
  selector.netdev = textOf(find(*node, "netdev"));
  selector.pci = readPciAddress(find(*node, "pci"), problems);
  selector.rdma = textOf(find(*node, "rdma"));
  selector.near = textOf(find(*node, "near"));
  selector.serial = textOf(find(*node, "serial"));
  selector.function = unsignedOf(find(*node, "function"));
  // The kernel's dev_valid_name() refuses these two as well.
  if (selector.netdev == "." || selector.netdev == "..") {
    problems.refuse(*find(*node, "netdev"), "invalid name of a network device");
    return std::nullopt;
  }
  const bool set =
      selector.netdev || selector.pci || selector.rdma || selector.near || selector.serial;
  return set ? std::optional(selector) : std::nullopt;
}

}  // namespace vfpass::config
