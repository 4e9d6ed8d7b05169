#include "judge_device.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "judge_pair.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// Lower-case hex digits of a GUID or GID, without separators.
std::string hexDigits(const std::string& text) {
  std::string digits;
  for (const char each : text) {
    if (std::isxdigit(static_cast<unsigned char>(each)) != 0) {
      digits += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    }
  }
  return digits;
}

// 8b/10b up to QDR, 64b/66b for FDR. The rates of newer speeds and of Ethernet exclude it.
double lineCode(const std::string& rate, bool infiniband) {
  const auto is = [&](const char* speed) { return rate.find(speed) != std::string::npos; };
  if (infiniband && (is("SDR") || is("DDR") || is("QDR"))) {
    return 8.0 / 10;
  }
  return infiniband && is("FDR") ? 64.0 / 66 : 1;
}

Wire wireOf(const GuestPort& port, bool infiniband) {
  if (infiniband) {
    return Wire::infiniband;
  }
  const GuestGid* gid = chosenGid(port);
  if (gid != nullptr && gid->type.find("v1") != std::string::npos) {
    return Wire::roceV1;
  }
  return gid == nullptr || hexDigits(gid->gid).starts_with("00000000000000000000ffff")
             ? Wire::roceV2OverIpv4
             : Wire::roceV2OverIpv6;
}

class DeviceJudge {
 public:
  DeviceJudge(const Lease& lease, const GuestView& view, const HostSide& host)
      : lease_(lease), view_(view), host_(host) {}

  DeviceVerdict judge() {
    const bool found = vfOf(lease_).infiniband ? findInfiniband() : findEthernet();
    if (found && isUsable()) {
      verdict_.port = portOf(*device_, device_->ports.front());
    }
    return verdict_;
  }

 private:
  void pass(const char* key, const std::string& expected, const std::string& seen) {
    verdict_.findings.push_back({key, lease_.entry, Outcome::passed, expected, seen, {}});
  }
  bool fail(const char* key, const std::string& expected, const std::string& seen,
            const std::string& remedy) {
    verdict_.findings.push_back({key, lease_.entry, Outcome::failed, expected, seen, remedy});
    return false;
  }

  bool findEthernet() {
    const std::string expected =
        keepsMac(lease_) ? "a network device at the VF's place" : "MAC " + guestIdentityOf(lease_);
    const GuestNetdev* netdev =
        keepsMac(lease_) ? netdevAtPlace() : findNetdev(guestIdentityOf(lease_));
    if (netdev == nullptr) {
      return missing("mac", keepsMac(lease_) ? expected : "a network device with " + expected,
                     seenNetdevs());
    }
    pass("mac", expected,
         netdev->name + " (" + netdev->driver + ", " + netdev->pci +
             (keepsMac(lease_) ? ", MAC " + netdev->mac : "") + ")");
    verdict_.function = netdev->pci;
    if (netdev->state != "up") {
      return fail("link", netdev->name + " is up", netdev->state,
                  bringUp(netdev->name) +
                      "; on the host: check that the PF is up and that the VF's link-state is "
                      "not disable");
    }
    pass("link", netdev->name + " is up", "up");
    netdev_ = netdev->name;
    pci_ = netdev->pci;
    const auto device = std::ranges::find_if(view_.rdmaDevices, [&](const GuestRdmaDevice& each) {
      return each.parent == netdev->name || (!each.pci.empty() && each.pci == netdev->pci);
    });
    return take(device, "an RDMA device on " + netdev->name);
  }

  // guest-setup brings up the interfaces that the mapping describes.
  [[nodiscard]] std::string bringUp(const std::string& netdev) const {
    return host_.guestMtu || !host_.guestAddress.empty()
               ? "run " + guestSetupOf(lease_.domainName) + ", which brings " + netdev + " up"
               : "in the guest: ip link set dev " + shellArgument(netdev) + " up";
  }

  // Without a MAC (`mac: keep`) only its place identifies the VF.
  [[nodiscard]] const GuestNetdev* netdevAtPlace() const {
    const auto place = functionAtPath(view_, host_.guestPath);
    const auto found = std::ranges::find_if(view_.netdevs, [&](const GuestNetdev& each) {
      return place && parsePciAddress(each.pci) == place;
    });
    return found == view_.netdevs.end() ? nullptr : &*found;
  }

  // With `teaming`, the virtio standby and the guest's net_failover device have the VF's MAC as
  // well; both belong to the virtio function.
  [[nodiscard]] const GuestNetdev* findNetdev(const std::string& mac) const {
    std::vector<const GuestNetdev*> same;
    for (const GuestNetdev& each : view_.netdevs) {
      if (!each.pci.empty() && each.mac == mac) {
        same.push_back(&each);
      }
    }
    const auto pick = [&](const auto& isVf) {
      const auto found = std::ranges::find_if(same, isVf);
      return found == same.end() ? nullptr : *found;
    };
    if (same.size() < 2) {
      return pick([](const GuestNetdev*) { return true; });
    }
    if (const auto place = functionAtPath(view_, host_.guestPath)) {
      return pick([&](const GuestNetdev* each) { return parsePciAddress(each->pci) == place; });
    }
    return pick([](const GuestNetdev* each) { return each->driver != "virtio_net"; });
  }

  bool findInfiniband() {
    const auto& guid = vfOf(lease_).settings.portGuid;
    const auto device = std::ranges::find_if(view_.rdmaDevices, [&](const GuestRdmaDevice& each) {
      return guid ? hasPortGuid(each, hexDigits(toString(*guid))) : isAtPlace(each);
    });
    verdict_.function = device == view_.rdmaDevices.end() ? "" : device->pci;
    return take(device, guid ? "an RDMA device with port GUID " + toString(*guid)
                             : "an RDMA device at the VF's place");
  }

  // IPoIB has no MAC; the port GUID is the lower half of the port's first GID.
  static bool hasPortGuid(const GuestRdmaDevice& device, const std::string& guid) {
    return std::ranges::any_of(device.ports, [&](const GuestPort& port) {
      return std::ranges::any_of(
          port.gids, [&](const GuestGid& entry) { return hexDigits(entry.gid).ends_with(guid); });
    });
  }

  // A VF that was taken over can have no recorded GUID: only its place identifies it.
  [[nodiscard]] bool isAtPlace(const GuestRdmaDevice& device) const {
    const auto place = functionAtPath(view_, host_.guestPath);
    return place && parsePciAddress(device.pci) == place;
  }

  // No device has the address: either the driver is missing, or the address is wrong.
  bool missing(const char* key, const std::string& expected, const std::string& seen) {
    if (const auto idle = withoutDriver(); !idle.empty()) {
      return fail(
          "driver", "a driver for the device", join(idle, ", ") + " without a driver",
          "in the guest: modprobe mlx5_core; if the module is missing, install the kernel's "
          "modules (linux-modules-extra) or NVIDIA's OFED");
    }
    return fail(key, expected, seen,
                "check in the guest that mlx5_core is loaded (lspci -k); look at vfpass status on "
                "the host");
  }

  // Candidates for the missing device: functions with the VF's PCI IDs, and network functions.
  [[nodiscard]] std::vector<std::string> withoutDriver() const {
    std::vector<std::string> idle;
    for (const auto& each : view_.withoutDriver) {
      const bool same =
          host_.vendor != 0 && each.vendor == host_.vendor && each.device == host_.device;
      if (same || each.network) {
        idle.push_back(each.address);
      }
    }
    return idle;
  }

  bool take(std::vector<GuestRdmaDevice>::const_iterator device, const std::string& expected) {
    if (!view_.libibverbs) {
      return fail(
          "rdma-core", "libibverbs", view_.libibverbsDetail,
          "in the guest: apt-get install rdma-core ibverbs-providers, or dnf install rdma-core");
    }
    pass("rdma-core", "libibverbs", "found");
    if (device == view_.rdmaDevices.end()) {
      return fail("rdma-device", expected, std::to_string(view_.rdmaDevices.size()) + " others",
                  "in the guest: modprobe mlx5_ib; check that RoCE is enabled (devlink dev param "
                  "show)");
    }
    device_ = &*device;
    pass("rdma-device", expected, device->name);
    return true;
  }

  bool isUsable() {
    // The device: user space opens it, and it has a port.
    if (!device_->opens) {
      return fail("rdma-opens", device_->name + " opens", device_->whyNot,
                  "check in the guest that ibverbs-providers is installed and that /dev/infiniband "
                  "exists");
    }
    if (device_->ports.empty()) {
      return fail("port", "a port on " + device_->name, "none", "in the guest: rdma link show");
    }
    // The port: it is active; on InfiniBand a subnet manager has configured it and given it a
    // P_Key.
    const GuestPort& port = device_->ports.front();
    const bool infiniband = vfOf(lease_).infiniband;
    if (const auto problem =
            infiniband ? judgeSubnet(lease_.entry, device_->name, port) : std::nullopt) {
      verdict_.findings.push_back(*problem);
      return false;
    }
    if (port.state.find("ACTIVE") == std::string::npos) {
      return fail("port", "port of " + device_->name + " is active", port.state,
                  "check on the host that the PF's link is up");
    }
    pass("port", "port of " + device_->name + " is active",
         port.state + (infiniband ? ", " + lidsOf(port) : ""));
    if (const auto found = infiniband ? judgePartitions(lease_.entry, port) : std::nullopt) {
      verdict_.findings.push_back(*found);
      if (found->outcome == Outcome::failed) {
        return false;
      }
    }
    // The GID: without one, nothing can address the port.
    if (!port.gidIndex) {
      return fail("gid", "a usable GID", "none",
                  infiniband
                      ? "on the host: set infiniband: {port-guid: auto} in the mapping, then "
                        "run vfpass attach"
                      : addressRemedy({{}, {}, host_.guestAddress, lease_.domainName}));
    }
    const GuestGid* gid = chosenGid(port);
    pass("gid", "a usable GID",
         "index " + std::to_string(*port.gidIndex) +
             (gid == nullptr ? "" : ", " + gid->type + " " + readableGid(gid->gid)));
    return true;
  }

  [[nodiscard]] std::string seenNetdevs() const {
    std::vector<std::string> seen;
    for (const auto& each : view_.netdevs) {
      if (!each.pci.empty()) {
        seen.push_back(each.name + " " + each.mac);
      }
    }
    return seen.empty() ? "none" : join(seen, ", ");
  }

  [[nodiscard]] RdmaPort portOf(const GuestRdmaDevice& device, const GuestPort& port) const {
    const GuestGid* gid = chosenGid(port);
    return {device.name,
            port.number,
            !device.parent.empty(),
            packetRate(port.rate, vfOf(lease_).infiniband),
            wireOf(port, vfOf(lease_).infiniband),
            port.activeMtu.value_or(0),
            netdev_,
            device.pci.empty() ? pci_ : device.pci,
            port.gidIndex,
            lineCode(port.rate, vfOf(lease_).infiniband),
            gid == nullptr ? std::string() : gid->gid};
  }

  const Lease& lease_;
  const GuestView& view_;
  const HostSide& host_;
  const GuestRdmaDevice* device_ = nullptr;
  std::string netdev_;
  std::string pci_;
  DeviceVerdict verdict_;
};

}  // namespace

Finding slowLink(const std::string& entry, const std::string& degraded) {
  return seenByHost({"pcie-link", entry, Outcome::warning,
                     "PCI Express links at full speed and width, which the limits assume", degraded,
                     "run `vfpass doctor` on the host: pcie-link names the slot"});
}

DeviceVerdict judgeDevice(const Lease& lease, const GuestView& view, const HostSide& host) {
  return DeviceJudge(lease, view, host).judge();
}

std::optional<double> packetRate(const std::string& rate, bool infiniband) {
  double gigabits = 0;
  const char* const end = rate.data() + rate.size();
  if (std::from_chars(rate.data(), end, gigabits).ec != std::errc{} || !(gigabits > 0) ||
      !std::isfinite(gigabits)) {
    return std::nullopt;
  }
  return gigabits * lineCode(rate, infiniband);
}

}  // namespace vfpass::verify
