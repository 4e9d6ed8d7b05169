#include "vfpass/plan/select_pf.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

bool matches(const PfSelector& selector, const PhysicalFunction& pf) {
  if (selector.netdev) {
    return pf.netdev() == *selector.netdev;
  }
  if (selector.pci) {
    return pf.address == *selector.pci;
  }
  if (selector.serial) {
    return pf.serial == *selector.serial &&
           (!selector.function || pf.address.function == *selector.function);
  }
  return selector.rdma && pf.rdmaDevice() == *selector.rdma;
}

std::string describe(const PhysicalFunction& pf) {
  return toString(pf.address) + (pf.netdev().empty() ? "" : " (" + pf.netdev() + ")");
}

std::string listPfs(const Inventory& inventory) {
  std::vector<std::string> names;
  for (const auto& pf : inventory.pfs) {
    names.push_back(describe(pf));
  }
  return names.empty() ? "this host has no SR-IOV capable NIC with a driver"
                       : "this host has " + joinFirst(names);
}

std::optional<std::string> suggestion(const PfSelector& selector, const Inventory& inventory) {
  std::vector<std::string> names;
  for (const auto& pf : inventory.pfs) {
    names.push_back(selector.netdev   ? pf.netdev()
                    : selector.rdma   ? pf.rdmaDevice()
                    : selector.serial ? pf.serial
                                      : "");
  }
  std::erase(names, "");
  const auto& written = selector.netdev ? selector.netdev
                        : selector.rdma ? selector.rdma
                                        : selector.serial;
  return closestSpelling(written.value_or(""), names);
}

}  // namespace

std::vector<const PhysicalFunction*> matchingPfs(const PfSelector& selector,
                                                 const Inventory& inventory) {
  std::vector<const PhysicalFunction*> matching;
  for (const auto& pf : inventory.pfs) {
    if (matches(selector, pf)) {
      matching.push_back(&pf);
    }
  }
  return matching;
}

Objection severalPfs(const PfSelector& selector,
                     const std::vector<const PhysicalFunction*>& matching,
                     const std::string& place) {
  std::vector<std::string> names;
  std::ranges::transform(matching, std::back_inserter(names),
                         [](const PhysicalFunction* pf) { return describe(*pf); });
  return {
      place + ": " + printable(toString(selector)) + " matches several PFs: " + joinFirst(names),
      selector.function ? "name the PF by `pci:`" : "specify `function:` as well",
      ExitCode::badInput};
}

const PhysicalFunction* selectPf(const PfSelector& selector, const Mapping& mapping,
                                 const Inventory& inventory, const SourcePlace& place,
                                 std::vector<Objection>& objections) {
  if (selector.near) {  // resolveNear() has replaced all that it could resolve
    objections.push_back({toString(place) + ": cannot determine the PF near " +
                              printable(*selector.near) + " of VM " + printable(mapping.vm),
                          "name the PF by netdev, pci, rdma or serial", ExitCode::badInput});
    return nullptr;
  }
  const auto matching = matchingPfs(selector, inventory);
  if (matching.size() == 1) {
    return matching.front();
  }
  if (matching.size() > 1) {
    objections.push_back(severalPfs(selector, matching, toString(place)));
    return nullptr;
  }
  const auto near = suggestion(selector, inventory);
  objections.push_back({toString(place) + ": no PF " + printable(toString(selector)) + " for VM " +
                            printable(mapping.vm) + "; " + listPfs(inventory),
                        near ? "did you mean `" + *near + "`?" : "see `vfpass pf list`",
                        ExitCode::badInput});
  return nullptr;
}

const PfPolicy* policyOf(const PhysicalFunction& pf, const HostPolicy& policy) {
  const auto found = std::ranges::find_if(
      policy.pfs, [&](const PfPolicy& entry) { return matches(entry.pf, pf); });
  return found == policy.pfs.end() ? nullptr : &*found;
}

unsigned possibleVfCount(const PhysicalFunction& pf, const HostPolicy& policy) {
  if (!pf.vfs.empty()) {
    return static_cast<unsigned>(pf.vfs.size());
  }
  const PfPolicy* entry = policyOf(pf, policy);
  return entry != nullptr && entry->vfCount ? *entry->vfCount : pf.totalVfs;
}

std::optional<PciAddress> vfAddress(const PhysicalFunction& pf, unsigned index) {
  if (index < pf.vfs.size()) {
    return pf.vfs[index].address;
  }
  if (pf.vfOffset == 0) {
    return std::nullopt;
  }
  // PCI Express base specification, SR-IOV capability: routing id of VF n (counted from 1) is the
  // PF's plus First VF Offset plus (n - 1) times VF Stride, carrying into the bus number.
  const unsigned pfId = static_cast<unsigned>(pf.address.bus) << 8U |
                        static_cast<unsigned>(pf.address.slot) << 3U | pf.address.function;
  const unsigned id = pfId + pf.vfOffset + index * pf.vfStride;
  return PciAddress{pf.address.domain, static_cast<std::uint8_t>(id >> 8U),
                    static_cast<std::uint8_t>(id >> 3U & 0x1fU),
                    static_cast<std::uint8_t>(id & 7U)};
}

}  // namespace vfpass::plan
