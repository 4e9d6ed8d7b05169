#include "vfpass/topology/device_matrix.hpp"

#include <algorithm>

#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::topology {
namespace {

std::string nameOf(const PassedDevice& device) {
  return device.name.empty() ? toString(device.host) : device.name;
}

std::optional<std::size_t> numberOf(const Topology& tree, const TopologyFunction* function) {
  return function == nullptr
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(function - tree.functions.data()));
}

DeviceMatrix matrixOf(const Topology& tree, const GuestMachine& machine,
                      const std::vector<std::optional<std::size_t>>& numbers) {
  DeviceMatrix matrix;
  for (std::size_t one = 0; one < numbers.size(); ++one) {
    matrix.names.push_back(nameOf(machine.passed[one]));
    auto& row = matrix.distances.emplace_back();
    for (std::size_t other = 0; other < numbers.size(); ++other) {
      if (one == other) {
        row.emplace_back(Distance::self);
      } else if (numbers[one] && numbers[other]) {
        row.emplace_back(std::max(Distance::pix, distance(tree, *numbers[one], *numbers[other])));
      } else {
        row.emplace_back(std::nullopt);
      }
    }
  }
  return matrix;
}

}  // namespace

std::optional<Distance> DeviceMatrix::between(const std::string& one,
                                              const std::string& other) const {
  const auto row = std::find(names.begin(), names.end(), one);
  const auto column = std::find(names.begin(), names.end(), other);
  if (row == names.end() || column == names.end()) {
    return std::nullopt;
  }
  return distances[static_cast<std::size_t>(row - names.begin())]
                  [static_cast<std::size_t>(column - names.begin())];
}

DeviceMatrix hostMatrix(const GuestMachine& machine, const Topology& host) {
  std::vector<std::optional<std::size_t>> numbers;
  for (const PassedDevice& device : machine.passed) {
    numbers.push_back(numberOf(host, findFunction(host, device.host)));
  }
  return matrixOf(host, machine, numbers);
}

DeviceMatrix guestMatrix(const GuestMachine& machine, const Topology& host) {
  const Topology guest = guestTopology(machine, host);
  std::vector<std::optional<std::size_t>> numbers;
  for (const PassedDevice& device : machine.passed) {
    const auto address = guestAddress(machine, device.place);
    numbers.push_back(address ? numberOf(guest, findFunction(guest, *address)) : std::nullopt);
  }
  return matrixOf(guest, machine, numbers);
}

GuestMachine withPfs(GuestMachine machine, const std::vector<Lease>& leases) {
  for (PassedDevice& device : machine.passed) {
    const auto lease = std::find_if(leases.begin(), leases.end(), [&device](const Lease& each) {
      return isVf(each) && each.entry == device.name;
    });
    if (lease != leases.end()) {
      device.host = lease->pf;
    }
  }
  return machine;
}

}  // namespace vfpass::topology
