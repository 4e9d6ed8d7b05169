#include "vfpass/state/record_json.hpp"

#include <tuple>

#include "database_tables.hpp"
#include "state_folder.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/model/lease_encoding.hpp"
#include "vfpass/model/lease_fields.hpp"

// One list of members per action, used for both writing and reading so that they always agree. The
// names are the stored format: changing one needs a migration (schema.cpp).

namespace vfpass::model {

template <typename Archive>
void fields(Archive& archive, CreateVfs& action) {
  archive("pf", action.pf);
  archive("count", action.count);
  archive("probe", action.probe);
  archive("autoprobe", action.autoprobe);
  archive("lag-device-pf", action.lagDevicePf);
}

template <typename Archive>
void fields(Archive& archive, RemoveVfs& action) {
  archive("pf", action.pf);
  archive("autoprobe", action.autoprobe);
}

template <typename Archive>
void fields(Archive& archive, VfChange& change) {
  archive("index", change.index);
  archive("settings", change.settings);
  archive("required", change.required);
}

template <typename Archive>
void fields(Archive& archive, ConfigureVfs& action) {
  archive("pf", action.pf);
  archive("vfs", action.vfs);
  archive("otherwise", action.otherwise);
}

template <typename Archive>
void fields(Archive& archive, BindDriver& action) {
  archive("function", action.function);
  archive.driver("driver", action.driver);
  archive.driver("driver-override", action.driverOverride);
}

template <typename Archive>
void fields(Archive& archive, ResetFunction& action) {
  archive("function", action.function);
}

template <typename Archive>
void fields(Archive& archive, RecordLease& action) {
  archive("lease", action.lease);
}

template <typename Archive>
void fields(Archive& archive, DropLease& action) {
  archive("domain", action.domain);
  archive("vf-name", action.entry);
  archive("generation", action.generation);
  archive("pf", action.pf);
}

template <typename Archive>
void fields(Archive& archive, EditDomain& action) {
  archive("domain", action.domain);
  archive("leases", action.leases);
}

template <typename Archive>
void fields(Archive& archive, EditLiveMetadata& action) {
  archive("domain", action.domain);
  archive("leases", action.leases);
}

template <typename Archive>
void fields(Archive& archive, PlugDevice& action) {
  archive("lease", action.lease);
}

template <typename Archive>
void fields(Archive& archive, UnplugDevice& action) {
  archive("lease", action.lease);
}

template <typename Archive>
void fields(Archive& archive, SetEswitchMode& action) {
  archive("pf", action.pf);
  archive("mode", action.mode);
}

template <typename Archive>
void fields(Archive& archive, SetMtu& action) {
  archive("pf", action.pf);
  archive("mtu", action.mtu);
}

template <typename Archive>
void fields(Archive& archive, SetLinkUp& action) {
  archive("pf", action.pf);
  archive("up", action.up);
}

template <typename Archive>
void fields(Archive& archive, AddSoftRoceLink& action) {
  archive("name", action.name);
  archive("netdev", action.netdev);
}

template <typename Archive>
void fields(Archive& archive, RemoveSoftRoceLink& action) {
  archive("name", action.name);
  archive("netdev", action.netdev);
  archive("number", action.number);
}

template <typename Archive>
void fields(Archive& archive, RecordSoftRoce& action) {
  archive("name", action.record.name);
  archive("netdev", action.record.netdev);
  archive("number", action.record.number);
  archive("boot-id", action.record.bootId);
}

template <typename Archive>
void fields(Archive& archive, ForgetSoftRoce& action) {
  archive("name", action.name);
}

}  // namespace vfpass::model

namespace vfpass::state {
namespace {

template <typename Kind>
struct StoredKind {
  const char* name;
};

// The stored names of the kinds.
constexpr std::tuple storedKinds{StoredKind<CreateVfs>{"create-vfs"},
                                 StoredKind<RemoveVfs>{"remove-vfs"},
                                 StoredKind<ConfigureVfs>{"configure-vfs"},
                                 StoredKind<BindDriver>{"bind-driver"},
                                 StoredKind<ResetFunction>{"reset-function"},
                                 StoredKind<RecordLease>{"record-lease"},
                                 StoredKind<DropLease>{"drop-lease"},
                                 StoredKind<EditDomain>{"edit-domain"},
                                 StoredKind<EditLiveMetadata>{"edit-live-metadata"},
                                 StoredKind<PlugDevice>{"plug-device"},
                                 StoredKind<UnplugDevice>{"unplug-device"},
                                 StoredKind<SetEswitchMode>{"set-eswitch-mode"},
                                 StoredKind<SetMtu>{"set-mtu"},
                                 StoredKind<SetLinkUp>{"set-link-up"},
                                 StoredKind<AddSoftRoceLink>{"add-soft-roce-link"},
                                 StoredKind<RemoveSoftRoceLink>{"remove-soft-roce-link"},
                                 StoredKind<RecordSoftRoce>{"record-soft-roce"},
                                 StoredKind<ForgetSoftRoce>{"forget-soft-roce"}};

template <typename Kind>
constexpr const char* kindName = std::get<StoredKind<Kind>>(storedKinds).name;

model::Json encodeAction(const Action& action) {
  return std::visit(
      [](const auto& kind) {
        model::ObjectWriter writer;
        auto copy = kind;
        writer("do", std::string(kindName<std::decay_t<decltype(kind)>>));
        fields(writer, copy);
        return writer.take();
      },
      action);
}

/// Reads the rest of the object into `action` if it is of this kind.
template <typename Kind>
bool decodeKind(const std::string& name, model::ObjectReader& reader, Action& action) {
  if (name != kindName<Kind>) {
    return false;
  }
  Kind kind;
  fields(reader, kind);
  action = std::move(kind);
  return true;
}

template <typename... Kinds>
bool decodeAnyKind(const std::string& name, model::ObjectReader& reader,
                   std::variant<Kinds...>& action) {
  return (decodeKind<Kinds>(name, reader, action) || ...);
}

// Reads one record. Throws CorruptDatabase if it is damaged, and otherwise Error if `read` refuses
// it.
template <typename Read>
auto readRecord(std::string_view text, Read read) {
  try {
    return read(model::parseRecord(text));
  } catch (const model::RecordRefused& refused) {
    if (refused.isDamaged) {
      throw CorruptDatabase("state database: damaged record: " + printable(refused.what()));
    }
    throwUnknownRecord(refused.what());
  }
}

Action decodeAction(const model::Json& json) {
  model::ObjectReader reader(json);
  std::string kind;
  reader("do", kind);
  Action action;
  if (!decodeAnyKind(kind, reader, action)) {
    model::throwUnknownRecord("unknown action '" + kind + "'");
  }
  reader.refuseUnknownMembers();
  return action;
}

}  // namespace

void throwUnknownRecord(const std::string& what) {
  throw Error("state database: this vfpass does not understand a record: " + printable(what),
              "a newer vfpass wrote it; reinstall that version and run `vfpass recover` before you "
              "downgrade");
}

std::string leaseToJson(const Lease& lease) { return model::encodeLease(lease); }

Lease leaseFromJson(std::string_view text) {
  return readRecord(text, [](const model::Json& json) { return model::decodeLease(json); });
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
  return readRecord(text, [](const model::Json& array) {
    if (!array.is_array()) {
      model::throwUnknownRecord("expected a list of actions");
    }
    std::vector<Action> actions;
    for (const model::Json& element : array) {
      actions.push_back(decodeAction(element));
    }
    return actions;
  });
}

}  // namespace vfpass::state
