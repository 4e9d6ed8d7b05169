#include "vfpass/model/lease_fields.hpp"

namespace vfpass::model {

std::string encodeLease(const Lease& lease) { return encode(lease).dump(); }

Lease decodeLease(const JsonReader& json) { return decode<Lease>(json); }

std::string encodeTerms(const Lease& lease) {
  constexpr int oneLine = -1;
  constexpr bool ascii = true;
  ObjectWriter writer;
  Lease copy = lease;  // `terms` is for readers and writers
  terms(writer, copy);
  return writer.take().dump(oneLine, ' ', ascii);
}

Lease decodeTerms(const JsonReader& json) {
  ObjectReader reader(json);
  Lease lease;
  terms(reader, lease);
  reader.refuseUnknownMembers();
  return lease;
}

DomainEdit decodeEdit(const JsonReader& json) { return decode<DomainEdit>(json); }

}  // namespace vfpass::model
