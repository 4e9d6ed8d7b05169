#include "lease_json.hpp"

#include "lease_fields.hpp"

namespace vfpass::state {

std::string leaseToJson(const Lease& lease) { return encode(lease).dump(); }

Lease leaseFromJson(std::string_view text) { return decode<Lease>(parseRecord(text)); }

}  // namespace vfpass::state
