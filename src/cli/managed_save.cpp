#include "drift.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::cli {

// A file of its own: the rest of drift is tested without a session.
std::string managedSaveDrift(Session& session, const DomainDescription& domain) {
  if (domain.active || !session.hypervisor().hasManagedSave(domain.uuid)) {
    return {};
  }
  return "domain: the next start of " + printable(domain.name) +
         " restores its managed save image, without the devices; `virsh managedsave-remove " +
         shellArgument(domain.name) + "` drops the saved guest";
}

}  // namespace vfpass::cli
