#include "world/simulated_kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "vfpass/base/text.hpp"

namespace vfpass::crash {
namespace {

unsigned number(const std::string& text) { return static_cast<unsigned>(std::atoi(text.c_str())); }

}  // namespace

SimulatedKernel::SimulatedKernel(HostFiles files) : files_(std::move(files)) {
  for (const char* driver : {"mlx5_core", "vfio-pci", "nvidia"}) {
    files_.write(std::string("sys/bus/pci/drivers/") + driver + "/bind", "");
    files_.write(std::string("sys/bus/pci/drivers/") + driver + "/unbind", "");
  }
}

SimulatedKernel::SimulatedKernel(const SimulatedKernel& other, HostFiles files)
    : pfs(other.pfs),
      functions(other.functions),
      rdmaDevices(other.rdmaDevices),
      brokenResets(other.brokenResets),
      files_(std::move(files)),
      lastRdmaNumber_(other.lastRdmaNumber_),
      pending_(other.pending_) {}

SimulatedPf* SimulatedKernel::findPf(const std::string& address) {
  const auto found = std::find_if(pfs.begin(), pfs.end(),
                                  [&](const auto& pf) { return toString(pf.address) == address; });
  return found == pfs.end() ? nullptr : &*found;
}

SimulatedPf* SimulatedKernel::findPf(int ifindex) {
  const auto found =
      std::find_if(pfs.begin(), pfs.end(), [&](const auto& pf) { return pf.ifindex == ifindex; });
  return found == pfs.end() ? nullptr : &*found;
}

VfSettings& SimulatedKernel::settings(const std::string& pf, unsigned vf) {
  return findPf(pf)->vfs.at(vf);
}

Message SimulatedKernel::change(const Message& request, std::optional<PartialFailure> failure) {
  const std::string& kind = request.at(0);
  if (kind == "add link") {
    return addRdmaDevice(request);
  }
  int error = 0;
  if (kind == "write" && request.size() > 3 && overridesOfLocked_.contains(request[3])) {
    error = ETIMEDOUT;
  } else if (kind == "write") {
    error = writeFile(request.at(1), request.at(2));
  } else if (kind == "set") {
    error = setAttributes(request, failure);
  } else if (kind == "set mode") {
    error = setMode(request);
  } else if (kind == "remove link") {
    std::erase_if(rdmaDevices,
                  [&](const auto& each) { return each.second.number == number(request.at(1)); });
  } else {
    error = setLink(request);
  }
  return {std::to_string(error)};
}

int SimulatedKernel::setAttributes(const Message& request, std::optional<PartialFailure> failure) {
  SimulatedPf* pf = findPf(std::atoi(request.at(1).c_str()));
  if (pf == nullptr) {
    return ENODEV;
  }
  // The kernel sets one attribute after the other and stops at the first failure (do_setvfinfo).
  long position = 0;
  for (std::size_t at = 2; at + 1 < request.size(); at += 2) {
    const auto vf = pf->vfs.find(number(request[at]));
    if (vf == pf->vfs.end()) {
      return EINVAL;
    }
    const auto requested = valueOf<VfSettings>(request[at + 1]);
    for (const Attribute attribute : differingAttributes(requested, {})) {
      if (failure && position++ == failure->attribute) {
        return failure->error;
      }
      vf->second = firstOf(only(requested, {attribute}), vf->second);
    }
  }
  return 0;
}

int SimulatedKernel::setLink(const Message& request) {
  SimulatedPf* pf = findPf(std::atoi(request.at(1).c_str()));
  if (pf == nullptr) {
    return ENODEV;
  }
  if (request.at(0) == "mtu") {
    pf->mtu = number(request.at(2));
    return 0;
  }
  pf->up = request.at(2) == "1";
  files_.write(files_.directoryOf(toString(pf->address)) + "/net/" + pf->netdev + "/flags",
               pf->up ? "0x1003\n" : "0x1002\n");
  return 0;
}

// mlx5 refuses the change while VFs exist. The netdev stays, with its MTU and flags: Linux 6.1 and
// 6.12 do not create it anew.
int SimulatedKernel::setMode(const Message& request) {
  SimulatedPf* pf = findPf(request.at(1));
  if (!pf->vfs.empty()) {
    return EBUSY;
  }
  pf->switchdev = request.at(2) == "1";
  return 0;
}

Message SimulatedKernel::addRdmaDevice(const Message& request) {
  if (rdmaDevices.contains(request.at(1))) {
    return {std::to_string(EEXIST)};
  }
  rdmaDevices[request.at(1)] = {request.at(2), ++lastRdmaNumber_};
  return {"0", std::to_string(lastRdmaNumber_)};
}

bool SimulatedKernel::isLocked(const std::optional<PciAddress>& device) const {
  return device && (overridesOfLocked_.contains(toString(*device)) ||
                    std::any_of(pending_.begin(), pending_.end(),
                                [&](const auto& each) { return each.device == *device; }));
}

Message SimulatedKernel::readFile(const Message& request) const {
  if (isLocked(parsePciAddress(request.at(2)))) {
    return {std::to_string(ETIMEDOUT)};
  }
  if (!files_.exists(request.at(1))) {
    return {std::to_string(ENOENT)};
  }
  return {"0", files_.read(request.at(1))};
}

Message SimulatedKernel::read(const Message& request) {
  const std::string& kind = request.at(0);
  if (kind == "read") {
    return readFile(request);
  }
  if (kind == "mode") {
    return {findPf(request.at(1))->switchdev ? "1" : "0"};
  }
  Message reply;
  if (kind == "links") {
    for (const auto& [name, device] : rdmaDevices) {
      reply.insert(reply.end(), {name, device.netdev, std::to_string(device.number)});
    }
    return reply;
  }
  const SimulatedPf* pf = findPf(std::atoi(request.at(1).c_str()));
  if (kind == "link") {
    return {std::to_string(pf->mtu), pf->up ? "1" : "0"};
  }
  reply = {"0"};
  if (pf != nullptr) {
    for (const auto& [vf, settings] : pf->vfs) {
      reply.insert(reply.end(), {std::to_string(vf), bytesOf(settings)});
    }
  }
  return reply;
}

void SimulatedKernel::postpone(const Message& request, int requests) {
  pending_.push_back({request, *deviceOf(request), requests});
}

void SimulatedKernel::finishPending() {
  for (const auto& each : std::exchange(pending_, {})) {
    change(each.request);
  }
}

void SimulatedKernel::countTowardsPending(const Message& request) {
  const auto device = deviceOf(request);
  for (auto& each : pending_) {
    if (--each.requestsLeft <= 0 || device == each.device) {
      finishPending();
      return;
    }
  }
}

bool SimulatedKernel::hasPendingWrite(const std::string& function) const {
  const std::string pfLink = "sys/bus/pci/devices/" + function + "/physfn";
  const std::string pf =
      files_.exists(pfLink)
          ? std::filesystem::read_symlink(files_.root() / pfLink).filename().string()
          : "";
  return std::any_of(pending_.begin(), pending_.end(), [&](const auto& each) {
    const std::string device = toString(each.device);
    return device == function || (device == pf && each.request.at(1).ends_with("/sriov_numvfs"));
  });
}

std::optional<PciAddress> deviceOf(const Message& request) {
  return request.at(0) == "write" ? parsePciAddress(request.at(3)) : std::nullopt;
}

std::string vfAddressOf(const std::string& pf, unsigned vf) {
  PciAddress address = *parsePciAddress(pf);
  const unsigned routingId =
      (static_cast<unsigned>(address.slot) << 3U | address.function) + 1 + vf;
  address.slot = static_cast<std::uint8_t>(routingId >> 3U);
  address.function = static_cast<std::uint8_t>(routingId & 7U);
  return toString(address);
}

long attributesIn(const Message& request) {
  if (request.at(0) != "set") {
    return 1;
  }
  std::size_t count = 0;
  for (std::size_t at = 3; at < request.size(); at += 2) {
    count += differingAttributes(valueOf<VfSettings>(request[at]), {}).size();
  }
  return static_cast<long>(count);
}

}  // namespace vfpass::crash
