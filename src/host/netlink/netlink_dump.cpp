#include "netlink/netlink_dump.hpp"

#include <cerrno>

namespace vfpass::host {

int dumpError(std::string_view dump) {
  int found = EBADMSG;
  eachMessage(dump, [&](const nlmsghdr& header, std::string_view bytes) {
    const bool ends = header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR;
    if (!ends || bytes.size() < sizeof header) {
      return;
    }
    // Both begin with a negative errno; old kernels omit it at the end of a dump.
    int error = 0;
    if (bytes.size() >= sizeof header + sizeof error) {
      std::memcpy(&error, bytes.data() + sizeof header, sizeof error);
    }
    found = error > 0 || error < -4095 ? EBADMSG : -error;
  });
  return found;
}

bool wasInterrupted(std::string_view dump) {
  bool interrupted = false;
  eachMessage(dump, [&](const nlmsghdr& header, std::string_view) {
    interrupted = interrupted || (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
  });
  return interrupted;
}

}  // namespace vfpass::host
