#include "vfpass/session/inquiries.hpp"

#include "vfpass/error.hpp"
#include "vfpass/hypervisor/libvirt.hpp"

namespace vfpass::session {

doctor::Inquiries inquiriesOf(Session& session) {
  doctor::Inquiries inquiries;
  inquiries.hypervisorVersions = [&session]() -> std::optional<std::string> {
    try {
      return hypervisor::daemonVersions(session.options().connect);
    } catch (const Error& error) {  // doctor reports the missing answer as a finding
      session.verbose(error.what());
      return std::nullopt;
    }
  };
  inquiries.runDirectory = session.options().runDirectory.relative_path().string();
  return inquiries;
}

}  // namespace vfpass::session
