#include "vfpass/session/name_models.hpp"

#include "vfpass/error.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/inventory/read_topology.hpp"

namespace vfpass::session {
namespace {

template <typename Devices>
void nameDevices(Session& session, Devices& devices) {
  try {
    inventory::nameModels(devices);
  } catch (const Error& error) {
    session.warn(std::string("no model names: ") + error.what() + "; " + error.remedy());
  }
}

}  // namespace

void nameModels(Session& session, Inventory& inventory) { nameDevices(session, inventory); }
void nameModels(Session& session, Topology& topology) { nameDevices(session, topology); }

}  // namespace vfpass::session
