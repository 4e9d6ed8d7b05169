// Records of the state database, of this or another version.
// covers: src/state/record_json.cpp src/model/record.cpp src/model/include/vfpass/model/record.hpp
// src/model/include/vfpass/model/lease_fields.hpp src/model/lease_fields.cpp
#include "fuzz/target.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  if (const auto lease = accepted([&] { return state::leaseFromJson(input); })) {
    require(state::leaseFromJson(state::leaseToJson(*lease)) == *lease,
            "a lease that is written reads the same");
  }
  if (const auto action = accepted([&] { return state::actionFromJson(input); })) {
    require(state::actionFromJson(state::actionToJson(*action)) == *action,
            "an action that is written reads the same");
  }
  if (const auto actions = accepted([&] { return state::actionsFromJson(input); })) {
    require(state::actionsFromJson(state::actionsToJson(*actions)) == *actions,
            "an undo list that is written reads the same");
  }
}

}  // namespace vfpass::fuzz
