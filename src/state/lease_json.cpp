#include "lease_json.hpp"

#include "failure.hpp"
#include "vfpass/model/lease_encoding.hpp"

namespace vfpass::state {

std::string leaseToJson(const Lease& lease) { return model::encodeLease(lease); }

Lease leaseFromJson(std::string_view text) {
  return readRecords([&] { return model::decodeLease(model::parseRecord(text)); });
}

}  // namespace vfpass::state
