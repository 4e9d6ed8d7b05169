#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// The IP address that a RoCE GID stands for: IPv4 if the GID is an IPv4-mapped address, otherwise
/// IPv6 (kernel, rdma_ip2gid). nullopt for another text. Pure.
std::optional<std::string> addressOfGid(const std::string& gid);

/// Judges the initiating probe's report on `ping`. Without a reply the finding is a warning: RDMA
/// does not need ICMP, which a firewall may drop. Pure.
Finding judgePing(const std::string& subject, const std::string& interface,
                  const std::string& address, const nlohmann::json& report);

/// The finding for a pair without an IP address to ping.
Finding noAddressToPing(const std::string& subject, const std::string& reason);

}  // namespace vfpass::verify
