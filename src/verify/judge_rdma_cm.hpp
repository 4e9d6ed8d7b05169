#pragma once

#include <cstdint>
#include <string>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "judge_pair.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Why rdma_cm cannot be tried at this port of the guest: no librdmacm, or no IP address. Empty: it
/// can. Pure.
std::string whyNoRdmaCm(const GuestView& view, const RdmaPort& port);

/// The finding for a pair of which one end cannot try. Nothing is broken then: only applications
/// that connect by rdma_cm need it.
Finding rdmaCmNotTried(const std::string& subject, const std::string& reason);

/// Whether both probes connected by rdma_cm and the target reports that it checked all bytes. Pure.
Finding judgeRdmaCm(const std::string& subject, std::uint64_t bytes, const PairReports& reports);

}  // namespace vfpass::verify
