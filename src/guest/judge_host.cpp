#include "judge_host.hpp"

#include <algorithm>

#include "judge_transfer.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::guest {

Finding judgeHold(const Lease& lease, const DeviceHold& hold) {
  const std::string vf = toString(lease.vf);
  const std::string expected = vf + " is this domain's: in its XML, on vfio-pci, open in its QEMU";
  const auto found = [&](Outcome outcome, const std::string& seen, const std::string& remedy) {
    return Finding{"device-host", lease.vfName, outcome, expected, seen, remedy};
  };
  if (!hold.inLiveXml) {
    return found(Outcome::failed, "the running domain has no hostdev " + vf,
                 "`vfpass status` says what differs; vfpass attach mends it");
  }
  // mlx5_vfio_pci is such a driver, too.
  if (hold.driver.find("vfio") == std::string::npos) {
    return found(Outcome::failed,
                 vf + (hold.driver.empty() ? " has no driver" : " is bound to " + hold.driver) +
                     " on the host: no guest has it",
                 "`vfpass status`, then stop the VM and start it again");
  }
  if (hold.holder.empty()) {
    return found(Outcome::notObservable, "no process that this host sees has it open",
                 "run it as root, outside containers");
  }
  if (!hold.byThisDomain) {
    return found(Outcome::failed, "it is open in " + hold.holder + ", which is not this domain's",
                 "`vfpass status`; what holds it?");
  }
  return found(Outcome::passed, vf + " on " + hold.driver + ", open in " + hold.holder, "");
}

Finding judgeOthers(const std::string& subject, std::uint64_t claimedBytes,
                    const std::vector<OtherVf>& others) {
  std::vector<std::string> still;
  std::vector<std::string> busy;
  for (const auto& other : others) {
    const auto moved = movedBytes(other.before, other.after);
    const bool stood = moved && *moved < claimedBytes;
    (stood ? still : busy)
        .push_back(other.name +
                   (moved ? " " + std::to_string(*moved) + " bytes" : " does not count"));
  }
  const std::string expected =
      "no other VF of the domain moves " + std::to_string(claimedBytes) + " bytes meanwhile";
  if (busy.empty()) {
    return {"other-vfs", subject, Outcome::passed, expected, join(still, ", "), ""};
  }
  return {"other-vfs",
          subject,
          Outcome::notObservable,
          expected,
          join(busy, ", ") + ": which of them carried the probe's data cannot be told",
          "stop other traffic of this VM and verify again"};
}

}  // namespace vfpass::guest
