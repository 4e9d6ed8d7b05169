#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "judge_device.hpp"
#include "judge_pair.hpp"
#include "judge_transfer.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// The transfers over one data path, and their order. A loopback moves data within one guest, a
/// pair between two; each adds findings and figures to the report.
class DataPath {
 public:
  DataPath(const DataPath&) = delete;
  DataPath& operator=(const DataPath&) = delete;
  virtual ~DataPath() = default;

 protected:
  /// `software`: one end is SoftRoCE.
  DataPath(std::string subject, bool software, const VerifyPlan& plan, VerifyReport& report)
      : subject_(std::move(subject)), software_(software), plan_(plan), report_(report) {}

  /// Writes and reads in this memory, with and without relaxed ordering, then the latency. False at
  /// the first failed check.
  bool tryTransfers(Transfer transfer);

  /// The probe's options for the transfer, with the plan's additional ones.
  [[nodiscard]] std::vector<std::string> optionsOf(const Transfer& transfer) const;

  virtual bool tryTransfer(const Transfer& transfer) = 0;
  virtual bool tryLatency(const Transfer& latency) = 0;

  std::string subject_;
  bool software_;
  const VerifyPlan& plan_;
  VerifyReport& report_;
};

/// The guest's side of a loopback. References must outlive it.
struct LoopbackGuest {
  agent::Agent& agent;
  const agent::PlacedProbe& probe;
  const VerifyWatch& watch;
  const std::vector<Lease>& idle;  ///< VFs whose counters have to stand still meanwhile
};

/// Moves data from one lease's VF to itself, and compares the host's counters after each transfer.
class LoopbackDataPath : public DataPath {
 public:
  /// References must outlive the object.
  LoopbackDataPath(const LoopbackGuest& guest, const Lease& lease, const RdmaPort& port,
                   const VerifyPlan& plan, VerifyReport& report)
      : DataPath(lease.entry, port.software, plan, report),
        guest_(guest),
        lease_(lease),
        port_(port) {}

  /// Tests host memory, or with `gpu` that GPU's memory next to host memory. Stops and returns
  /// false at the first failed check. Throws AgentUnavailable.
  bool tryMemory(const std::optional<TestedGpu>& gpu);

  /// Writes and reads between this GPU's memory and host memory, in both directions. One that fails
  /// does not stop the others. Throws AgentUnavailable.
  void tryMixedMemory(const TestedGpu& gpu);

  /// All message sizes in host memory, or in that GPU's. Throws AgentUnavailable.
  void trySizes(const std::optional<TestedGpu>& gpu);

 private:
  bool tryTransfer(const Transfer& transfer) override;
  bool tryLatency(const Transfer& latency) override;
  [[nodiscard]] Transfer transferIn(const std::optional<TestedGpu>& gpu) const;
  /// Runs the probe, and compares the counters if its report passes `judge`.
  template <typename Judge>
  bool conclude(const Transfer& transfer, const std::vector<std::string>& options,
                const Judge& judge);
  [[nodiscard]] std::vector<OtherVf> otherVfs() const;
  void judgeCounters(const std::string& label, std::uint64_t claimedBytes,
                     const std::optional<VfTraffic>& before, std::vector<OtherVf> others);
  [[nodiscard]] nlohmann::json runLoopback(const Transfer& transfer,
                                           const std::vector<std::string>& options) const;

  LoopbackGuest guest_;
  const Lease& lease_;
  const RdmaPort& port_;
};

/// One end of a data path between two guests. References must outlive it.
struct PairEnd {
  agent::Agent& agent;
  const agent::PlacedProbe& probe;
  Lease lease;
  RdmaPort port;
  HostSide host;
  ReadTraffic traffic;
  std::string machine;           ///< as in PairGuest
  std::optional<TestedGpu> gpu;  ///< whose memory the next tryMemory("gpu") uses
  std::string subject;           ///< subject of findings about this end only
  std::string noRdmaCm = {};     ///< why rdma_cm cannot be tried here; empty: it can
};

/// An end with the agent to use for it.
struct SessionEnd {
  agent::Agent& agent;
  const PairEnd& end;
};

/// Runs `listen` in the target's guest and `connect` with these options in the initiator's, and
/// relays between them. Throws Error.
PairReports runSession(const SessionEnd& initiator, const SessionEnd& target,
                       const VerifyPlan& plan, const std::vector<std::string>& operation);

/// Compares the counters of this end's VF with the bytes that its guest claims to have moved.
Finding judgeCounters(const PairEnd& end, const std::string& label, std::uint64_t claimedBytes,
                      const std::optional<VfTraffic>& before);

/// Moves data from one guest's VF to another's: reachability, writes and reads with and without
/// relaxed ordering, latency. Compares the counters of both VFs after each transfer. Adds findings
/// and figures to the report. A guest that does not allow a step is a finding.
class PairDataPath : public DataPath {
 public:
  /// References must outlive the object.
  PairDataPath(std::string subject, const PairEnd& initiator, const PairEnd& target,
               const VerifyPlan& plan, VerifyReport& report)
      : DataPath(std::move(subject), initiator.port.software || target.port.software, plan, report),
        initiator_(initiator),
        target_(target) {}

  /// Whether the target's IP address answers the initiator, through the VF's interface. Never
  /// fails: RDMA does not need it.
  void ping();
  /// Whether rdma_cm connects both IP addresses and moves data. Waived if one end cannot try.
  void connectByRdmaCm();
  /// Both return false at the first failed check.
  bool reach();
  /// `host`, or `gpu`: GPU memory of both ends, next to host memory.
  bool tryMemory(const std::string& memory);

  /// Writes and reads between memory of different kinds: `gpu` stands for the initiator's GPU and
  /// the target's host memory, `host` for the opposite. One that fails does not stop the other.
  void tryMixedMemory(const std::string& initiatorMemory);
  /// All message sizes in memory of this kind at both ends.
  void trySizes(const std::string& memory);

 private:
  [[nodiscard]] std::string guestSetups() const;
  bool tryTransfer(const Transfer& transfer) override;
  bool tryLatency(const Transfer& latency) override;
  /// With the counters of both VFs, if it passed.
  template <typename Judge>
  bool concludeWithCounters(const std::string& key, const std::vector<std::string>& options,
                            const Transfer& transfer, const Judge& judge);
  template <typename Judge>
  bool conclude(const std::string& key, const std::vector<std::string>& operation,
                const Judge& judge);

  const PairEnd& initiator_;
  const PairEnd& target_;
};

}  // namespace vfpass::verify
