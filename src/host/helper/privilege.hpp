#pragma once

namespace vfpass::host {

/// Whether this process has CAP_NET_ADMIN in the initial user namespace, which rtnetlink requires
/// for configuring the host's links.
bool mayConfigureLinks();

}  // namespace vfpass::host
