#pragma once

namespace vfpass::host {

/// Whether this process has CAP_NET_ADMIN in the initial user namespace, as rtnetlink demands it of
/// whoever configures a host's links.
bool mayConfigureLinks();

}  // namespace vfpass::host
