#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/session/drift.hpp"

namespace vfpass::session {

// In a file of its own because the tests of the other drift functions link no session.
std::string managedSaveDrift(Session& session, const DomainDescription& domain) {
  if (domain.active || !session.hypervisor().hasManagedSave(domain.uuid)) {
    return {};
  }
  return "domain: the next start of " + printable(domain.name) +
         " restores its managed save image, which has no vfpass devices; run "
         "`virsh managedsave-remove " +
         shellArgument(domain.name) + "` to discard the image";
}

}  // namespace vfpass::session
