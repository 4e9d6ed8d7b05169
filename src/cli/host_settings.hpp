#pragma once

#include <chrono>
#include <vector>

#include "session.hpp"
#include "vfpass/host/link_settings.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/report/host_report.hpp"

namespace vfpass::cli {

/// For links and reading; for a driver that rebuilds its netdevs (mlx5: seconds a port).
inline constexpr std::chrono::milliseconds linkPatience{10000};
inline constexpr std::chrono::milliseconds eswitchPatience{120000};

/// The eswitch mode and the link of a PF now; nullopt where not observable (also on a captured
/// tree).
std::optional<host::EswitchMode> foundEswitchMode(const Session& session,
                                                  const PhysicalFunction& pf);
std::optional<host::LinkSettings> foundLink(const Session& session, const PhysicalFunction& pf);

/// What host.yaml wants of this PF (nullptr: it has no entry) beside what is found.
report::HostEntry describePf(const Session& session, const PhysicalFunction& pf,
                             const PfPolicy* policy);

}  // namespace vfpass::cli
