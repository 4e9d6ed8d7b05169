#include "vfpass/state/record_json.hpp"

#include <tuple>

#include "database_tables.hpp"
#include "state_folder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/model/lease_fields.hpp"

namespace vfpass::model {

template <typename Archive>
void fields(Archive& archive, VfChange& change) {
  archive("index", change.index);
  archive("settings", change.settings);
  archive("required", change.required);
}

template <typename Archive>
void fields(Archive& archive, SoftRoceRecord& record) {
  archive("name", record.name);
  archive("netdev", record.netdev);
  archive("number", record.number);
  archive("boot-id", record.bootId);
}

template <typename Archive>
void fields(Archive& archive, HandedOver& device) {
  archive("domain-name", device.domainName);
  archive("device", device.device);
  archive("vf-index", device.vfIndex);
  archive("infiniband", device.infiniband);
}

template <typename Archive>
void fields(Archive& archive, ResetResult& reset) {
  archive("time", reset.time);
  archive("methods", reset.methods);
  archive("failure", reset.failure);
  archive.orEmpty("memory", reset.memory);
}

template <typename Archive>
void fields(Archive& archive, ErrorCounts& counts) {
  archive("hardware", counts.hardware);
  archive("others", counts.others);
  archive("corrected", counts.corrected);
}

template <typename Archive>
void fields(Archive& archive, UseBegin& begin) {
  archive("boot-id", begin.bootId);
  archive("errors", begin.errors);
  archive("log-record", begin.logRecord);
}

template <typename Archive>
void fields(Archive& archive, DeviceUse& use) {
  archive("device", use.device);
  archive("domain", use.domain);
  archive("began", use.began);
  archive("reset", use.reset);
  archive.orEmpty("identity", use.identity);
}

template <typename Archive>
void fields(Archive& archive, HandOverRecord& record) {
  archive("time", record.time);
  archive("domain", record.domain);
  archive("domain-name", record.domainName);
  archive("entry", record.entry);
  archive("generation", record.generation);
  archive("device", record.device);
  archive.orEmpty("identity", record.identity);
  archive("reset", record.reset);
  archive("settings", record.settings);
  archive("not-neutral", record.notNeutral);
  archive("firmware", record.firmware);
  archive("errors", record.errors);
  archive("unobserved", record.unobserved);
  archive("quarantine", record.quarantine);
}

}  // namespace vfpass::model

namespace vfpass::state {
namespace {

template <typename Kind, typename Value>
struct Member {
  using Action = Kind;
  const char* name;
  Value Kind::*value;

  template <typename Archive>
  void visit(Archive& archive, Kind& action) const {
    archive(name, action.*value);
  }
};

template <typename Kind, typename Value>
Member(const char*, Value Kind::*) -> Member<Kind, Value>;

/// A member that is the name of a driver.
template <typename Kind>
struct DriverMember {
  using Action = Kind;
  const char* name;
  std::string Kind::*value;

  template <typename Archive>
  void visit(Archive& archive, Kind& action) const {
    archive.driver(name, action.*value);
  }
};

template <typename Kind>
DriverMember(const char*, std::string Kind::*) -> DriverMember<Kind>;

/// A member that earlier versions do not have; it is stored only if it is not empty.
template <typename Kind, typename Value>
struct LaterMember {
  using Action = Kind;
  const char* name;
  Value Kind::*value;

  template <typename Archive>
  void visit(Archive& archive, Kind& action) const {
    archive.orEmpty(name, action.*value);
  }
};

template <typename Kind, typename Value>
LaterMember(const char*, Value Kind::*) -> LaterMember<Kind, Value>;

/// A member whose own members are stored in its place.
template <typename Kind, typename Value>
struct InlineMember {
  using Action = Kind;
  Value Kind::*value;

  template <typename Archive>
  void visit(Archive& archive, Kind& action) const {
    fields(archive, action.*value);
  }
};

template <typename Kind, typename Value>
InlineMember(Value Kind::*) -> InlineMember<Kind, Value>;

/// How one kind of action is stored.
template <typename Kind, typename... Members>
struct Stored {
  const char* name;
  std::tuple<Members...> members;
};

template <typename First, typename... Others>
constexpr auto stored(const char* name, First first, Others... others) {
  return Stored<typename First::Action, First, Others...>{name, {first, others...}};
}

// Every kind, for both writing and reading so that they always agree. The names are the stored
// format: changing one needs a migration (schema.cpp).
constexpr std::tuple storedKinds{
    stored("create-vfs", Member{"pf", &CreateVfs::pf}, Member{"count", &CreateVfs::count},
           Member{"probe", &CreateVfs::probe}, Member{"autoprobe", &CreateVfs::autoprobe},
           Member{"lag-device-pf", &CreateVfs::lagDevicePf}),
    stored("remove-vfs", Member{"pf", &RemoveVfs::pf}, Member{"autoprobe", &RemoveVfs::autoprobe}),
    stored("configure-vfs", Member{"pf", &ConfigureVfs::pf}, Member{"vfs", &ConfigureVfs::vfs},
           Member{"otherwise", &ConfigureVfs::otherwise}),
    stored("bind-driver", Member{"function", &BindDriver::function},
           DriverMember{"driver", &BindDriver::driver},
           DriverMember{"driver-override", &BindDriver::driverOverride},
           Member{"migratable", &BindDriver::migratable}),
    stored("reset-function", Member{"function", &ResetFunction::function}),
    stored("record-lease", Member{"lease", &RecordLease::lease}),
    stored("drop-lease", Member{"domain", &DropLease::domain}, Member{"vf-name", &DropLease::entry},
           Member{"generation", &DropLease::generation}, Member{"pf", &DropLease::pf},
           Member{"handed-over", &DropLease::handedOver}),
    stored("edit-domain", Member{"domain", &EditDomain::domain},
           Member{"leases", &EditDomain::leases}, LaterMember{"kept", &EditDomain::kept}),
    stored("edit-live-metadata", Member{"domain", &EditLiveMetadata::domain},
           Member{"leases", &EditLiveMetadata::leases}),
    stored("plug-device", Member{"lease", &PlugDevice::lease}),
    stored("unplug-device", Member{"lease", &UnplugDevice::lease}),
    stored("set-eswitch-mode", Member{"pf", &SetEswitchMode::pf},
           Member{"mode", &SetEswitchMode::mode}),
    stored("set-mtu", Member{"pf", &SetMtu::pf}, Member{"mtu", &SetMtu::mtu}),
    stored("set-link-up", Member{"pf", &SetLinkUp::pf}, Member{"up", &SetLinkUp::up}),
    stored("add-soft-roce-link", Member{"name", &AddSoftRoceLink::name},
           Member{"netdev", &AddSoftRoceLink::netdev}),
    stored("remove-soft-roce-link", Member{"name", &RemoveSoftRoceLink::name},
           Member{"netdev", &RemoveSoftRoceLink::netdev},
           Member{"number", &RemoveSoftRoceLink::number}),
    stored("record-soft-roce", InlineMember{&RecordSoftRoce::record}),
    stored("forget-soft-roce", Member{"name", &ForgetSoftRoce::name}),
    stored("set-partition", Member{"gpus", &SetPartition::gpus},
           Member{"modules", &SetPartition::modules}, Member{"active", &SetPartition::active})};

static_assert(std::tuple_size_v<decltype(storedKinds)> == std::variant_size_v<Action>);

template <typename Archive, typename Kind, typename... Members>
void visitMembers(Archive& archive, const Stored<Kind, Members...>& stored, Kind& action) {
  std::apply([&](const auto&... member) { (member.visit(archive, action), ...); }, stored.members);
}

template <typename Kind, typename... Members>
bool encodeKind(const Stored<Kind, Members...>& stored, const Action& action,
                model::ObjectWriter& writer) {
  const Kind* kind = std::get_if<Kind>(&action);
  if (kind == nullptr) {
    return false;
  }
  writer("do", std::string(stored.name));
  Kind copy = *kind;  // members are visited by readers and writers
  visitMembers(writer, stored, copy);
  return true;
}

/// Reads the rest of the object into `action` if it is of this kind.
template <typename Kind, typename... Members>
bool decodeKind(const Stored<Kind, Members...>& stored, const std::string& name,
                model::ObjectReader& reader, Action& action) {
  if (name != stored.name) {
    return false;
  }
  visitMembers(reader, stored, action.emplace<Kind>());
  return true;
}

model::Json encodeAction(const Action& action) {
  model::ObjectWriter writer;
  std::apply([&](const auto&... kind) { (encodeKind(kind, action, writer) || ...); }, storedKinds);
  return writer.take();
}

Action decodeAction(const JsonReader& json) {
  model::ObjectReader reader(json);
  std::string name;
  reader("do", name);
  Action action;
  const auto decode = [&](const auto&... kind) {
    return (decodeKind(kind, name, reader, action) || ...);
  };
  if (!std::apply(decode, storedKinds)) {
    json.refuse("unknown action '" + name + "'");
  }
  reader.refuseUnknownMembers();
  return action;
}

const JsonSource recordSource{"state database: this vfpass does not understand a record",
                              "if a newer vfpass wrote it, reinstall that version and run `vfpass "
                              "recover` before you downgrade; otherwise the record is damaged: "
                              "move /var/lib/vfpass/vfpass.db* to another folder, then run "
                              "`vfpass recover`, which rebuilds the leases from the domains' XML"};

// Reads one record. Throws CorruptDatabase if it is damaged, and otherwise Error if `read` refuses
// it.
template <typename Read>
auto readRecord(std::string_view text, Read read) {
  try {
    const model::Json json = model::parseRecord(text);
    return read(JsonReader(json, recordSource));
  } catch (const JsonRefused& refused) {
    throw CorruptDatabase("state database: damaged record: " + printable(refused.what()));
  }
}

}  // namespace

void throwUnknownRecord(const std::string& what) { throw badJson(recordSource, what); }

std::string leaseToJson(const Lease& lease) { return model::encodeLease(lease); }

Lease leaseFromJson(std::string_view text) { return readRecord(text, model::decodeLease); }

std::string handOverToJson(const HandOverRecord& record) { return model::encode(record).dump(); }

HandOverRecord handOverFromJson(std::string_view text) {
  return readRecord(text, model::decode<HandOverRecord>);
}

std::string deviceUseToJson(const DeviceUse& use) { return model::encode(use).dump(); }

DeviceUse deviceUseFromJson(std::string_view text) {
  return readRecord(text, model::decode<DeviceUse>);
}

std::string actionToJson(const Action& action) { return encodeAction(action).dump(); }

Action actionFromJson(std::string_view text) { return readRecord(text, decodeAction); }

std::string actionsToJson(const std::vector<Action>& actions) {
  model::Json array = model::Json::array();
  for (const Action& action : actions) {
    array.push_back(encodeAction(action));
  }
  return array.dump();
}

std::vector<Action> actionsFromJson(std::string_view text) {
  return readRecord(text, [](const JsonReader& list) {
    if (!list.json().is_array()) {
      list.refuseType("a list of actions");
    }
    std::vector<Action> actions;
    for (const JsonReader& element : list.requireList()) {
      actions.push_back(decodeAction(element));
    }
    return actions;
  });
}

}  // namespace vfpass::state
