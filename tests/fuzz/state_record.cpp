// Records of the state database, of this or another version, and the seal of a hand-over.
// covers: src/state/record_json.cpp src/model/record.cpp src/model/include/vfpass/model/record.hpp
// src/model/include/vfpass/model/lease_fields.hpp src/model/lease_fields.cpp
// -encodeTerms -decodeTerms -decodeEdit
#include "fuzz/target.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/state/record_json.hpp"

namespace vfpass::fuzz {
namespace {

// A seal covers every byte of the record, and only the record, with this key.
void checkSeal(const std::string& record, std::string_view input) {
  const SealKey key{std::vector<std::uint8_t>(32, 7), "host"};
  const std::string seal = domain::sealOfRecord(record, key);
  require(domain::isSealedRecord(record, seal, key), "the seal of a record is valid");
  std::string other = record;
  char& changed = other[input.size() % other.size()];
  changed = static_cast<char>(changed ^ 1);
  require(!domain::isSealedRecord(other, seal, key), "a changed byte makes the seal invalid");
  require(!domain::isSealedRecord(record + " ", seal, key), "so does an added one");
  require(!domain::isSealedRecord(record, seal, {key.secret, "other"}), "so does another host");
  require(!domain::isSealedRecord(record, "", {}), "without a key no record is sealed");
}

void checkHandOver(std::string_view input) {
  if (const auto record = accepted([&] { return state::handOverFromJson(input); })) {
    const std::string text = state::handOverToJson(*record);
    require(state::handOverFromJson(text) == *record, "a hand-over that is written reads the same");
    checkSeal(text, input);
  }
  if (const auto use = accepted([&] { return state::deviceUseFromJson(input); })) {
    require(state::deviceUseFromJson(state::deviceUseToJson(*use)) == *use,
            "the use of a device that is written reads the same");
  }
}

}  // namespace

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
  checkHandOver(input);
}

}  // namespace vfpass::fuzz
