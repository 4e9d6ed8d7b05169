#pragma once

#include "vfpass/model/lease_fields.hpp"
#include "vfpass/plan.hpp"

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
