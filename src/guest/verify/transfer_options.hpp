#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "judge_transfer.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {

/// The probe's arguments for its role (`loopback`, `connect`, `listen`) and its port. `gpu`:
/// address in the system of the probe; may be empty. After `deadline` the probe exits by itself.
std::vector<std::string> portArguments(const char* command, const RdmaPort& port,
                                       const std::string& gpu, std::chrono::seconds deadline);

/// The deadline of a probe that the guest starts now.
std::chrono::seconds probeDeadline(const VerifyPlan& plan, const agent::Agent& guest);

/// A write and a read, each without and with relaxed ordering, as wanted. `automatic` leaves out
/// relaxed ordering for a software device, which never reorders.
std::vector<Transfer> variantsOf(Transfer transfer, RelaxedOrdering wanted);

/// The probe's options for a transfer, without those for the port and the roles.
std::vector<std::string> transferOptions(const Transfer& transfer);

/// A write and a read between GPU memory and host memory: the initiator's is `initiatorMemory`, and
/// the target has the other one.
std::vector<Transfer> mixedTransfers(const std::string& subject, const VerifyPlan& plan,
                                     bool software, const std::string& initiatorMemory);

/// The findings for mixedTransfers() that are not tried because GPU memory alone failed.
std::vector<Finding> mixedNotTried(const std::string& prefix, const std::string& subject);

/// The same path with small messages, one at a time, at most as many as the plan has.
Transfer latencyOf(Transfer transfer, const VerifyPlan& plan);
std::vector<std::string> latencyOptions(const Transfer& latency);

/// All message sizes over the same path.
std::vector<std::string> sizesOptions(const Transfer& transfer, const VerifyPlan& plan);
/// Whether to measure them: only if requested, and without additional probe options.
bool sizesWanted(const VerifyPlan& plan);

/// False with additional probe options: injected faults are for transfers only.
bool latencyWanted(const VerifyPlan& plan);

}  // namespace vfpass::verify
