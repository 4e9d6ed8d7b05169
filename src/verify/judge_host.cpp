#include "judge_host.hpp"

#include <algorithm>

#include "judge_transfer.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {

Finding judgeHold(const Lease& lease, const DeviceHold& hold) {
  const std::string vf = toString(lease.vf);
  const std::string expected =
      vf + " in this domain's XML, bound to vfio-pci, open in this domain's QEMU";
  const auto found = [&](Outcome outcome, const std::string& seen, const std::string& remedy) {
    return seenByHost({"device-host", lease.entry, outcome, expected, seen, remedy});
  };
  if (!hold.inLiveXml) {
    return found(Outcome::failed, "the running domain has no hostdev " + vf,
                 "look at `vfpass status`, then run `vfpass attach`");
  }
  // Also matches variant drivers such as mlx5_vfio_pci.
  if (hold.driver.find("vfio") == std::string::npos) {
    return found(Outcome::failed,
                 vf + (hold.driver.empty() ? " has no driver" : " is bound to " + hold.driver) +
                     " on the host, so no guest has it",
                 "look at `vfpass status`, then shut the VM off and start it again");
  }
  if (hold.holder.empty()) {
    return found(Outcome::notObservable, "no process visible here has it open",
                 "run vfpass as root, outside containers");
  }
  if (!hold.byThisDomain) {
    return found(Outcome::failed,
                 "open in " + hold.holder + ", which does not belong to this domain",
                 "look at `vfpass status`, then stop that process");
  }
  return found(Outcome::passed, vf + " on " + hold.driver + ", open in " + hold.holder, "");
}

Finding judgeOthers(const std::string& subject, std::uint64_t claimedBytes,
                    const std::vector<OtherVf>& others) {
  std::vector<std::string> idle;
  std::vector<std::string> busy;
  for (const auto& other : others) {
    const auto moved = movedBytes(other.before, other.after);
    const bool isIdle = moved && *moved < claimedBytes;
    (isIdle ? idle : busy)
        .push_back(other.name +
                   (moved ? " " + std::to_string(*moved) + " bytes" : " has no counters"));
  }
  const std::string expected = "no other VF of the domain moves " + std::to_string(claimedBytes) +
                               " bytes during the transfer";
  if (busy.empty()) {
    return seenByHost({"other-vfs", subject, Outcome::passed, expected, join(idle, ", "), ""});
  }
  return seenByHost({"other-vfs", subject, Outcome::notObservable, expected,
                     join(busy, ", ") + ": cannot tell which VF carried the probe's data",
                     "stop other traffic of this VM, then run vfpass verify again"});
}

}  // namespace vfpass::verify
