#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "netlink_reply.hpp"
#include "netlink_request.hpp"

namespace vfpass::host {

/// The netdev of a PF as the place where its VFs are read and set; tests replace it by a simulated
/// driver.
class VfPort {
 public:
  VfPort() = default;
  VfPort(const VfPort&) = delete;
  VfPort& operator=(const VfPort&) = delete;
  virtual ~VfPort() = default;

  /// What the driver says now. Throws Error, TimeoutError.
  virtual VfTable read() = 0;
  /// Sends all of it in as few messages as possible and stops at the first that is refused; what
  /// the driver took before that stays. Throws Error when the kernel gives no answer at all.
  virtual Acknowledgement set(const std::vector<VfRequest>& requests) = 0;
};

/// The real one, over rtnetlink. By interface index, because names change. Each exchange runs in a
/// guarded child: sendmsg(2) does the work under the RTNL and blocks while anybody holds that.
class NetlinkPort final : public VfPort {
 public:
  /// `name` is for messages. `pf`: the device whose VFs are set, where they are.
  NetlinkPort(int interfaceIndex, bool infiniband, std::string name,
              std::chrono::milliseconds deadline, std::optional<PciAddress> pf = std::nullopt);
  VfTable read() override;
  Acknowledgement set(const std::vector<VfRequest>& requests) override;
  /// What went through each VF; empty where the driver does not count. Throws Error, TimeoutError.
  VfTrafficTable readTraffic();

 private:
  std::string exchange(const std::string& request, const char* verb,
                       std::optional<PciAddress> changed = std::nullopt);

  int interfaceIndex_;
  bool infiniband_;
  std::string name_;
  std::chrono::milliseconds deadline_;
  std::optional<PciAddress> pf_;
  std::uint32_t sequence_ = 0;
};

}  // namespace vfpass::host
