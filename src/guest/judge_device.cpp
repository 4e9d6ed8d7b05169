#include "judge_device.hpp"

#include <algorithm>
#include <charconv>

#include "vfpass/base/text.hpp"

namespace vfpass::guest {
namespace {

// Lower-case hex digits of a GUID or GID, whatever stands between them.
std::string hexDigits(const std::string& text) {
  std::string digits;
  for (const char each : text) {
    if (std::isxdigit(static_cast<unsigned char>(each)) != 0) {
      digits += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    }
  }
  return digits;
}

class DeviceJudge {
 public:
  DeviceJudge(const Lease& lease, const GuestView& view) : lease_(lease), view_(view) {}

  DeviceVerdict judge() {
    const bool sound = lease_.infiniband ? infiniband() : ethernet();
    if (sound && usable()) {
      verdict_.port = portOf(*device_, device_->ports.front());
    }
    return verdict_;
  }

 private:
  void pass(const char* key, const std::string& expected, const std::string& seen) {
    verdict_.findings.push_back({key, lease_.vfName, Outcome::passed, expected, seen, {}});
  }
  bool fail(const char* key, const std::string& expected, const std::string& seen,
            const std::string& remedy) {
    verdict_.findings.push_back({key, lease_.vfName, Outcome::failed, expected, seen, remedy});
    return false;
  }

  bool ethernet() {
    const std::string mac = lease_.settings.mac ? toString(*lease_.settings.mac) : std::string();
    const auto netdev = std::ranges::find_if(view_.netdevs, [&](const GuestNetdev& each) {
      return !each.pci.empty() && each.mac == mac;
    });
    if (netdev == view_.netdevs.end()) {
      return missing("mac", "a network device with MAC " + mac, seenNetdevs());
    }
    pass("mac", "MAC " + mac, netdev->name + " (" + netdev->driver + ", " + netdev->pci + ")");
    if (netdev->state != "up") {
      return fail("link", netdev->name + " is up", netdev->state,
                  "in the guest: ip link set dev " + printable(netdev->name) +
                      " up; on the host: is the PF up, and the VF's link-state not disable?");
    }
    pass("link", netdev->name + " is up", "up");
    const auto device = std::ranges::find_if(view_.rdmaDevices, [&](const GuestRdmaDevice& each) {
      return each.parent == netdev->name || (!each.pci.empty() && each.pci == netdev->pci);
    });
    return take(device, "an RDMA device on " + netdev->name);
  }

  // IPoIB has no MAC of its own: the port GUID is the lower half of the port's first GID.
  bool infiniband() {
    const std::string guid =
        lease_.settings.portGuid ? hexDigits(toString(*lease_.settings.portGuid)) : std::string();
    const auto device = std::ranges::find_if(view_.rdmaDevices, [&](const GuestRdmaDevice& each) {
      return std::ranges::any_of(each.ports, [&](const GuestPort& port) {
        return std::ranges::any_of(
            port.gids, [&](const std::string& gid) { return hexDigits(gid).ends_with(guid); });
      });
    });
    return take(device, "an RDMA device with port GUID " +
                            (lease_.settings.portGuid ? toString(*lease_.settings.portGuid) : "?"));
  }

  // Nothing that carries the address: is it the driver that is missing, or the address?
  bool missing(const char* key, const std::string& expected, const std::string& seen) {
    if (!view_.withoutDriver.empty()) {
      return fail("driver", "a driver for every network function",
                  join(view_.withoutDriver, ", ") + " without a driver",
                  "in the guest: modprobe mlx5_core");
    }
    return fail(key, expected, seen,
                "in the guest: is mlx5_core loaded (lspci -k)? On the host: vfpass status");
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
                  "in the guest: modprobe mlx5_ib; is RoCE on (devlink dev param show)?");
    }
    device_ = &*device;
    pass("rdma-device", expected, device->name);
    return true;
  }

  bool usable() {
    if (!device_->opens) {
      return fail("rdma-opens", device_->name + " opens", device_->whyNot,
                  "in the guest: is ibverbs-providers installed, and /dev/infiniband there?");
    }
    if (device_->ports.empty()) {
      return fail("port", "a port on " + device_->name, "none", "in the guest: rdma link show");
    }
    const GuestPort& port = device_->ports.front();
    if (port.state.find("ACTIVE") == std::string::npos) {
      return fail(
          "port", "port of " + device_->name + " is active", port.state,
          "on the host: is the PF's link up, and for InfiniBand does the subnet manager run with "
          "virt_enabled 2?");
    }
    pass("port", "port of " + device_->name + " is active", port.state);
    if (!port.gidIndex) {
      return fail("gid", "a GID to use", "none",
                  "in the guest: give its network device an address");
    }
    pass("gid", "a GID to use", "index " + std::to_string(*port.gidIndex));
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

  static RdmaPort portOf(const GuestRdmaDevice& device, const GuestPort& port) {
    RdmaPort result{device.name, port.number, !device.parent.empty(), std::nullopt};
    double rate = 0;  // "100 Gb/sec (4X EDR)"
    const char* const end = port.rate.data() + port.rate.size();
    if (std::from_chars(port.rate.data(), end, rate).ec == std::errc{} && rate > 0) {
      result.gigabitsPerSecond = rate;
    }
    return result;
  }

  const Lease& lease_;
  const GuestView& view_;
  const GuestRdmaDevice* device_ = nullptr;
  DeviceVerdict verdict_;
};

}  // namespace

DeviceVerdict judgeDevice(const Lease& lease, const GuestView& view) {
  return DeviceJudge(lease, view).judge();
}

std::vector<Finding> judgeGpus(const GuestView& view, bool wanted) {
  if (view.gpus.empty() && !wanted) {
    return {{"gpu", "", Outcome::waived, "", "the guest has no GPU", ""}};
  }
  if (view.gpus.empty()) {
    return {{"gpu", "", Outcome::failed, "a GPU in the guest", "none",
             "name it below gpus: in the mapping, and run vfpass attach"}};
  }
  if (!view.libcuda) {
    return {{"gpu-driver", "", Outcome::failed, "libcuda", view.libcudaDetail,
             "in the guest: install NVIDIA's driver"}};
  }
  const bool dmaBuf = std::ranges::any_of(view.gpus, &GuestGpu::dmaBuf);
  if (!dmaBuf && !view.peerMemory) {
    return {{"gpu-road", "", Outcome::failed, "DMA-BUF or nvidia_peermem", "neither",
             "in the guest: modprobe nvidia_peermem (built after the OFED), or use the open kernel "
             "modules, which know DMA-BUF"}};
  }
  return {{"gpu-driver", "", Outcome::passed, "libcuda", "found", ""},
          {"gpu-road", "", Outcome::passed, "DMA-BUF or nvidia_peermem",
           dmaBuf ? "DMA-BUF" : "nvidia_peermem", ""}};
}

}  // namespace vfpass::guest
