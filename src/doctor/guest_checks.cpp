#include <array>

#include "check.hpp"

namespace vfpass::doctor {
namespace {

std::string withoutPeers(const View& view) {
  return view.requirements().peers
             ? ""
             : "checked only with --vm, for a domain with two devices of the host";
}

void checkPeerMapping(const View& view, Results& results) {
  const PeerMapping& peers = *view.requirements().peers;
  const std::string expected = "the BARs of each device are mapped for the others";
  const std::string seen =
      std::string(peers.running ? "the running QEMU: " : "the domain's XML: ") + peers.reason;
  if (!peers.possible) {
    results.notObservable("", expected, seen, peers.remedy);
  } else if (*peers.possible) {
    results.passed("", expected, seen);
  } else {
    results.failed("", expected, seen, peers.remedy);
  }
}

std::string withoutMirroredGuest(const View& view) {
  return view.requirements().ncclTopology
             ? ""
             : "checked only with --vm, for a running VM with a GPU in a mirrored tree";
}

// As reported by the guest agent.
void checkNcclTopology(const View& view, Results& results) {
  const Finding& found = *view.requirements().ncclTopology;
  if (found.outcome == Outcome::passed) {
    results.passed("", found.expected, found.seen);
  } else if (found.outcome == Outcome::warning) {
    results.failed("", found.expected, found.seen, found.remedy);
  } else {
    results.notObservable("", found.expected, found.seen, found.remedy);
  }
}

constexpr std::array checks{
    Check{"peer-mapping", "GPU and NIC reach each other only through BARs that VFIO has mapped",
          withoutPeers, checkPeerMapping},
    Check{"guest-nccl-topology",
          "without it NCCL takes each virtual switch for a 2.5 GT/s x1 link and assumes 0.2 GB/s",
          withoutMirroredGuest, checkNcclTopology}};

}  // namespace

std::span<const Check> guestChecks() { return checks; }

}  // namespace vfpass::doctor
