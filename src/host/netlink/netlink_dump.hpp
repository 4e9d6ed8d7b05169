#pragma once

#include <linux/netlink.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace vfpass::host {

/// Calls `visit(header, bytes)` for each complete message of a dump.
template <typename Visit>
void eachMessage(std::string_view dump, Visit visit) {
  while (dump.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, dump.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > dump.size()) {
      return;
    }
    visit(header, dump.substr(0, header.nlmsg_len));
    dump.remove_prefix(std::min(dump.size(), std::size_t{NLMSG_ALIGN(header.nlmsg_len)}));
  }
}

/// The result of a dump: errno, or 0 when it is complete. EBADMSG when its end is missing.
int dumpError(std::string_view dump);

/// Whether the data changed while the kernel wrote the dump (NLM_F_DUMP_INTR): entries may be
/// missing.
bool wasInterrupted(std::string_view dump);

}  // namespace vfpass::host
