#include "vfpass/report/status_report.hpp"

#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

Cell domainCell(const StatusEntry& entry) {
  if (!entry.domainExists) {
    return {entry.lease.domainName + " (gone)", Tint::bad};
  }
  return {entry.lease.domainName + (entry.domainActive ? " (active)" : "")};
}

Cell driftCell(const StatusEntry& entry) {
  if (!entry.drift.empty()) {
    return {"yes", Tint::bad};
  }
  return entry.notObservable.empty() && entry.domainAnswered ? Cell{"no", Tint::good}
                                                             : Cell{"not observable", Tint::muted};
}

// The bus in the XML is the index of a controller; the guest's firmware numbers buses in another
// order.
PciAddress guestAddressOf(const StatusEntry& entry) {
  return entry.guestAddress.value_or(entry.lease.guest.address);
}

std::vector<Cell> statusRow(const StatusEntry& entry) {
  const Lease& lease = entry.lease;
  const bool vf = isVf(lease);
  return {domainCell(entry),
          {lease.entry},
          {toString(lease.device)},
          {vf ? toString(lease.pf) : nothing},
          {vf ? std::to_string(vfOf(lease).index) : nothing},
          {toString(guestAddressOf(entry))},
          {std::string(toString(lease.state))},
          {vf ? hardwareAddress(vfOf(lease).settings, vfOf(lease).infiniband) : nothing},
          driftCell(entry)};
}

void writeTable(std::ostream& out, const std::vector<StatusEntry>& entries, const Style& style) {
  if (entries.empty()) {
    out << "no leases\n";
    return;
  }
  Table table(
      {"DOMAIN", "ENTRY", "DEVICE", "PF", "INDEX", "GUEST", "STATE", "MAC OR GUID", "DRIFT"});
  for (const auto& entry : entries) {
    table.add(statusRow(entry));
  }
  table.write(out, style);
}

void writeDrift(std::ostream& out, const std::vector<StatusEntry>& entries, const Style& style) {
  for (const auto& entry : entries) {
    for (const auto& line : entry.drift) {
      out << tinted("drift: ", Tint::bad, style) << printable(entry.lease.domainName) << ' '
          << printable(entry.lease.entry) << ": " << printable(line) << '\n';
    }
  }
  for (const auto& entry : entries) {
    if (!entry.notObservable.empty()) {
      out << "not observable: " << printable(entry.lease.domainName) << ' '
          << printable(entry.lease.entry) << ": the kernel does not report "
          << join(entry.notObservable, ", ") << '\n';
    }
  }
  for (const auto& entry : entries) {
    if (!entry.setAtStart.empty()) {
      out << "the next start sets: " << printable(entry.lease.domainName) << ' '
          << printable(entry.lease.entry) << ": " << printable(join(entry.setAtStart, ", "))
          << '\n';
    }
  }
}

std::vector<std::string> notSupported(const Lease& lease) {
  std::vector<std::string> names;
  for (const Attribute attribute : refusedAttributes(lease)) {
    names.emplace_back(toString(attribute));
  }
  return names;
}

void writeSwitchFacts(std::ostream& out, const std::vector<StatusEntry>& entries) {
  for (const auto& entry : entries) {
    if (!entry.representor.empty()) {
      out << "representor: " << printable(entry.lease.domainName) << ' '
          << printable(entry.lease.entry) << ": " << printable(entry.representor) << '\n';
    }
    if (const auto names = notSupported(entry.lease); !names.empty()) {
      out << "not supported by the driver: " << printable(entry.lease.domainName) << ' '
          << printable(entry.lease.entry) << ": " << join(names, ", ") << '\n';
    }
  }
}

// `yes`, `no`, `unknown`.
std::string_view possibleText(const PeerMapping& mapping) {
  if (!mapping.possible) {
    return "unknown";
  }
  return *mapping.possible ? "yes" : "no";
}

void writePeers(std::ostream& out, const std::vector<PeerMapping>& peers, const Style& style) {
  for (const auto& peer : peers) {
    const Tint tint = peer.possible.value_or(false) ? Tint::none : Tint::bad;
    out << tinted("peer-to-peer: ", tint, style) << printable(peer.domainName) << ": "
        << possibleText(peer) << ": " << peer.reason
        << (peer.remedy.empty() ? "" : "; " + peer.remedy) << '\n';
  }
}

void writeText(std::ostream& out, const StatusReport& status, const Style& style) {
  writeTable(out, status.entries, style);
  writeDrift(out, status.entries, style);
  writeSwitchFacts(out, status.entries);
  writePeers(out, status.peers, style);
  for (const auto& metadata : status.refused) {
    out << tinted("metadata refused: ", Tint::bad, style) << printable(metadata.domainName) << ": "
        << printable(metadata.reason) << "; " << printable(metadata.remedy) << '\n';
  }
  for (const auto& note : status.notes) {
    out << "note: " << printable(note) << '\n';
  }
}

std::vector<std::string> notObservableOf(const StatusEntry& entry) {
  auto names = entry.notObservable;
  if (!entry.domainAnswered) {
    names.emplace_back("domain");
  }
  return names;
}

Json entryJson(const StatusEntry& entry) {
  const Lease& lease = entry.lease;
  const bool vf = isVf(lease);
  return {{"domain", domainJson(lease.domainName, lease.domain)},
          {"domain_exists", entry.domainExists},
          {"domain_active", entry.domainActive},
          {"entry", lease.entry},
          {"kind", toString(kindOf(lease))},
          {"pf", vf ? Json(toString(lease.pf)) : Json()},
          {"index", vf ? Json(vfOf(lease).index) : Json()},
          {"vf", toString(lease.device)},
          {"guest_address", toString(guestAddressOf(entry))},
          {"state", toString(lease.state)},
          {"generation", lease.generation},
          {"settings", settingsJson(settingsOf(lease))},
          {"drift", entry.drift},
          {"not_observable", notObservableOf(entry)},
          {"set_at_start", entry.setAtStart},
          {"not_supported", notSupported(lease)},
          {"representor", textOrNull(entry.representor)}};
}

Json peerJson(const PeerMapping& peer) {
  return {{"domain", domainJson(peer.domainName, peer.domain)},
          {"backend", toString(peer.backend)},
          {"seen_in", peer.running ? "process" : "xml"},
          {"possible", possibleText(peer)},
          {"reason", peer.reason},
          {"remedy", peer.remedy}};
}

void writeJson(std::ostream& out, const StatusReport& status) {
  Json document = newDocument();
  document["leases"] = listJson(status.entries, entryJson);
  document["peer_mappings"] = listJson(status.peers, peerJson);
  document["refused_metadata"] = listJson(status.refused, [](const auto& metadata) -> Json {
    return {{"domain", domainJson(metadata.domainName, metadata.domain)},
            {"reason", metadata.reason},
            {"remedy", metadata.remedy}};
  });
  document["notes"] = status.notes;
  writeDocument(out, document);
}

}  // namespace

void writeStatus(std::ostream& out, const StatusReport& status, const Style& style) {
  if (style.json) {
    writeJson(out, status);
  } else {
    writeText(out, status, style);
  }
}

}  // namespace vfpass::report
