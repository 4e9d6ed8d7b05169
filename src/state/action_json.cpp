#include "vfpass/state/action_json.hpp"

#include "action_fields.hpp"
#include "failure.hpp"

namespace vfpass::state {
namespace {

// The stored names of the kinds, in the order of the variant.
template <typename Kind>
constexpr const char* kindName = nullptr;
template <>
constexpr const char* kindName<CreateVfs> = "create-vfs";
template <>
constexpr const char* kindName<RemoveVfs> = "remove-vfs";
template <>
constexpr const char* kindName<ConfigureVfs> = "configure-vfs";
template <>
constexpr const char* kindName<BindDriver> = "bind-driver";
template <>
constexpr const char* kindName<ResetFunction> = "reset-function";
template <>
constexpr const char* kindName<RecordLease> = "record-lease";
template <>
constexpr const char* kindName<DropLease> = "drop-lease";
template <>
constexpr const char* kindName<EditDomain> = "edit-domain";
template <>
constexpr const char* kindName<EditLiveMetadata> = "edit-live-metadata";
template <>
constexpr const char* kindName<PlugDevice> = "plug-device";
template <>
constexpr const char* kindName<UnplugDevice> = "unplug-device";
template <>
constexpr const char* kindName<SetEswitchMode> = "set-eswitch-mode";
template <>
constexpr const char* kindName<SetMtu> = "set-mtu";
template <>
constexpr const char* kindName<SetLinkUp> = "set-link-up";
template <>
constexpr const char* kindName<AddSoftRoceLink> = "add-soft-roce-link";
template <>
constexpr const char* kindName<RemoveSoftRoceLink> = "remove-soft-roce-link";
template <>
constexpr const char* kindName<RecordSoftRoce> = "record-soft-roce";
template <>
constexpr const char* kindName<ForgetSoftRoce> = "forget-soft-roce";

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

std::string actionToJson(const Action& action) { return encodeAction(action).dump(); }

Action actionFromJson(std::string_view text) {
  return readRecords([&] { return decodeAction(model::parseRecord(text)); });
}

std::string actionsToJson(const std::vector<Action>& actions) {
  model::Json array = model::Json::array();
  for (const Action& action : actions) {
    array.push_back(encodeAction(action));
  }
  return array.dump();
}

std::vector<Action> actionsFromJson(std::string_view text) {
  return readRecords([&] {
    const model::Json array = model::parseRecord(text);
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
