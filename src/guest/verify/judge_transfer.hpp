#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "judge_device.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass {
class JsonReader;
}

namespace vfpass::verify {

/// A rate or a time with three significant digits, for messages.
std::string rounded(double value);

/// `90 %`.
std::string percentText(double share);

/// A latency as people read it: `4.01 us`, `4011 us`, `14.6 ms`.
std::string latencyText(double microseconds);

/// A latency of a report; 0 if it is missing, invalid, or longer than any probe runs.
double plausibleMicroseconds(const JsonReader& value);

/// One data path to test.
struct Transfer {
  std::string subject;
  std::string operation;  ///< `write`, `read`
  std::string memory;     ///< `host`, `gpu`: both ends', or only the initiator's
  std::uint64_t messageBytes = 0;
  std::uint64_t iterations = 0;
  bool relaxedOrdering = false;
  bool besideHost = false;        ///< first measure host memory in the same session
  std::string gpu = {};           ///< name of the GPU, for the report; empty for host memory
  std::string targetMemory = {};  ///< if it differs from the initiator's
  bool software = false;  ///< SoftRoCE: its rate means nothing, so transfers are not prolonged

  /// Bytes of one run, at least.
  [[nodiscard]] std::uint64_t bytes() const { return messageBytes * iterations; }

  [[nodiscard]] const std::string& memoryOfTarget() const {
    return targetMemory.empty() ? memory : targetMemory;
  }
  /// `host`, `gpu`, or the direction of the data: `gpu-to-host`, `host-to-gpu`.
  [[nodiscard]] std::string path() const;
};

/// Bytes that have passed a VF, by its counters on the PF.
struct MovedBytes {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  auto operator<=>(const MovedBytes&) const = default;
};

/// Bytes that a guest claims to have moved through a VF. Headers, acknowledgements and packets that
/// were sent again only add to its counters.
struct ClaimedBytes {
  MovedBytes least;
  /// The VF of a loopback sends and receives all of it: one of the counters has to show it, because
  /// not every device counts both.
  bool isLoopback = false;

  auto operator<=>(const ClaimedBytes&) const = default;
};

/// What the guest of the initiator claims by its report: the bytes that it checked in all runs, at
/// least those requested. It sends the writes and receives the reads.
ClaimedBytes claimedBytes(const Transfer& transfer, const nlohmann::json& report, bool isLoopback);

/// The same of the other end, which receives what this one sends.
ClaimedBytes atOtherEnd(const ClaimedBytes& claimed);

/// Each direction by its own counter.
bool covers(const MovedBytes& moved, const ClaimedBytes& claimed);

/// `9000 bytes sent and 64 bytes received`, of the directions in which `claimed` has any; of a
/// loopback `9000 bytes`.
std::string bytesText(const MovedBytes& moved, const ClaimedBytes& claimed);

/// Judges the probe's report on a transfer: whether it checked all requested bytes and found them
/// correct. Adds the figure, if any.
Finding judgeTransfer(const Transfer& transfer, const nlohmann::json& report,
                      std::vector<Figure>& figures);

/// Judges the probe's report on the preset `sizes`: writes and reads of every power of two from 2
/// bytes to 16 MiB in this memory, each with checked bytes and a figure. Adds the figures, whose
/// source is `sizeFigures`.
Finding judgeSizes(const Transfer& transfer, const nlohmann::json& report,
                   std::vector<Figure>& figures);

/// Judges the probe's report on its latency runs, each with `transfer`'s size: all bytes correct
/// and figures valid. Adds the figures.
Finding judgeLatency(const Transfer& transfer, const nlohmann::json& report,
                     std::vector<Figure>& figures);

/// Compares the VF's counters on the PF with the bytes that the guest claims to have moved. nullopt
/// stands for counters that the driver does not have.
Finding judgeTraffic(const std::string& subject, const ClaimedBytes& claimed,
                     const std::optional<VfTraffic>& before, const std::optional<VfTraffic>& after);

/// Increase of the counters; nullopt without counters.
std::optional<MovedBytes> movedBytes(const std::optional<VfTraffic>& before,
                                     const std::optional<VfTraffic>& after);

/// Another VF of the same domain, with its traffic before and after the probe moved data.
struct OtherVf {
  std::string name;
  std::optional<VfTraffic> before;
  std::optional<VfTraffic> after;
};

/// Whether the data may have gone through another VF of the domain, which the guest passes off as
/// the leased one. Counters that moved less than that in each direction rule it out. Pure.
Finding judgeOthers(const std::string& subject, const ClaimedBytes& claimed,
                    const std::vector<OtherVf>& others);

/// judgeTraffic() for the lease's VF since `before`. Firmware updates counters with a delay, so
/// counters that have not increased enough are read again for up to three seconds.
Finding settledTraffic(const Lease& lease, const ClaimedBytes& claimed,
                       const std::optional<VfTraffic>& before, const ReadTraffic& read);

}  // namespace vfpass::verify
