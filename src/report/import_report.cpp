#include "vfpass/report/command_reports.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <ostream>
#include <sstream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

Json policyJson(const BootPolicy& policy) {
  return {{"file", policy.file},
          {"manager", policy.manager},
          {"pf", policy.pf ? Json(toString(*policy.pf)) : Json()},
          {"vf", valueOrNull(policy.vf)},
          {"setting", policy.text},
          {"remedy", textOrNull(policy.remedy)}};
}

Json sourcesJson(const ImportedVf& vf) {
  Json sources = Json::object();
  for (const auto& [attribute, source] : vf.sources) {
    std::string name(toString(attribute));
    std::ranges::replace(name, '-', '_');
    sources[name] = source;
  }
  return sources;
}

Json importedVfJson(const ImportedVf& vf) {
  return {{"name", vf.name},
          {"device", toString(vf.device)},
          {"pf", toString(vf.pf)},
          {"index", vf.index},
          {"interface", vf.interfaceForm},
          {"managed", vf.managed},
          {"teaming", valueOrNull(vf.teamingWith)},
          {"settings", settingsJson(vf.settings)},
          {"sources", sourcesJson(vf)},
          {"notes", vf.notes}};
}

Json importedFunctionJson(const ImportedFunction& function) {
  return {{"name", function.name},
          {"device", toString(function.device)},
          {"gpu", function.isGpu},
          {"model", textOrNull(function.model)},
          {"driver", textOrNull(function.driver)},
          {"notes", function.notes}};
}

Json leftOutJson(const LeftOut& each) {
  return {{"element", each.form},
          {"device", each.device ? Json(toString(*each.device)) : Json()},
          {"reason", toString(each.reason)},
          {"message", each.message},
          {"remedy", textOrNull(each.remedy)}};
}

Json importRefusalJson(const ImportRefusal& each) {
  return {{"message", each.message}, {"remedy", textOrNull(each.remedy)}};
}

Json allowJson(const std::map<Allowance, std::string>& allow) {
  Json list = Json::array();
  for (const auto& [risk, reason] : allow) {
    list.push_back({{"risk", toString(risk)}, {"reason", reason}});
  }
  return list;
}

Json importedPfJson(const ImportedPf& pf) {
  return {{"pf", toString(pf.pf)},
          {"netdev", textOrNull(pf.netdev)},
          {"virtual_function_count", pf.vfCount},
          {"probe_virtual_functions", pf.probesVfs},
          {"embedded_switch_mode", pf.eswitchMode ? Json(toString(*pf.eswitchMode)) : Json()},
          {"mtu", pf.link ? Json(pf.link->mtu) : Json()},
          {"up", pf.link ? Json(pf.link->up) : Json()},
          {"set_at_boot", listJson(pf.policies, policyJson)}};
}

Json importJson(const Json& vm, const ImportedMapping& mapping, const ImportedHost& host) {
  Json document = newDocument();
  document["vm"] = vm;
  document["vfs"] = listJson(mapping.vfs, importedVfJson);
  document["functions"] = listJson(mapping.functions, importedFunctionJson);
  document["allow"] = allowJson(mapping.allow);
  document["nvlink"] = mapping.nvlink ? Json(toString(*mapping.nvlink)) : Json();
  document["left_out"] = listJson(mapping.leftOut, leftOutJson);
  document["refusals"] = listJson(mapping.refusals, importRefusalJson);
  document["pfs"] = listJson(host.pfs, importedPfJson);
  document["set_at_boot"] = listJson(vm.is_null() ? host.unclear : mapping.unclear, policyJson);
  return document;
}

void writeImportJson(std::ostream& out, Json document, const std::string& text,
                     const std::string& file) {
  document["file"] = textOrNull(file);
  document["text"] = text;
  writeDocument(out, document);
}

}  // namespace

void writeImport(std::ostream& out, const ImportReport& report, const std::string& text,
                 const std::string& file, const Style& style) {
  if (style.json) {
    writeImportJson(out, importJson(report.vm, report.mapping, {}), text, file);
  } else {
    out << text;
  }
}

void writeImport(std::ostream& out, const ImportHostReport& report, const std::string& text,
                 const std::string& file, const Style& style) {
  if (style.json) {
    writeImportJson(out, importJson(Json(), {}, report.host), text, file);
  } else {
    out << text;
  }
}

namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// Names may look like a number or a truth value.
std::string nameEntry(const std::string& name) {
  constexpr std::array words{"true", "false", "yes", "no", "on", "off", "y", "n", "null"};
  const bool plain = std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                     std::ranges::find(words, toLower(name)) == words.end();
  return plain ? name : yamlString(name);
}

std::string booleanText(bool value) { return value ? "true" : "false"; }

std::string vlanEntry(const Vlan& vlan) {
  std::string text = "{id: " + std::to_string(vlan.id);
  text += vlan.qos == 0 ? "" : ", qos: " + std::to_string(vlan.qos);
  text += vlan.protocol == VlanProtocol::dot1q
              ? ""
              : ", protocol: " + std::string(toString(vlan.protocol));
  return text + "}";
}

std::string rateEntry(const Rate& rate) {
  std::string text = rate.min == 0 ? "" : "min: " + std::to_string(rate.min);
  if (rate.max != 0) {
    text += (text.empty() ? "" : ", ") + ("max: " + std::to_string(rate.max));
  }
  return "{" + text + "}";
}

std::string valueEntry(const MacAddress& mac) { return quoted(toString(mac)); }
std::string valueEntry(const Guid& guid) { return quoted(toString(guid)); }
std::string valueEntry(const Vlan& vlan) { return vlanEntry(vlan); }
std::string valueEntry(const Rate& rate) { return rateEntry(rate); }
std::string valueEntry(bool value) { return booleanText(value); }
std::string valueEntry(LinkState state) { return std::string(toString(state)); }
std::string valueEntry(std::uint16_t number) { return std::to_string(number); }

/// Writes the lines of one mapping.
class MappingText {
 public:
  explicit MappingText(const ImportReport& report) : report_(report), mapping_(report.mapping) {}

  std::string text() {
    writeHead();
    writeAllow();
    if (mapping_.nvlink) {
      out_ << "# The GPUs are on a board with NVSwitches; check that this is how they are used.\n"
           << "nvlink: " << toString(*mapping_.nvlink) << '\n';
    }
    writeFunctions("gpus", true);
    writeFunctions("functions", false);
    out_ << (mapping_.vfs.empty() ? "" : "vfs:\n");
    for (const ImportedVf& vf : mapping_.vfs) {
      writeVf(vf);
    }
    return out_.str();
  }

 private:
  void writeHead() {
    const std::string vm = shellArgument(report_.vm);
    out_ << "# yaml-language-server: $schema=" << report_.schemaFile << '\n'
         << "# Imported by `" << printable(report_.command) << "`: what the domain has now.\n"
         << "# `vfpass check " << vm << "` checks it, and `vfpass attach " << vm
         << "` takes the devices over in place.\n";
    if (!mapping_.leftOut.empty()) {
      out_ << "# Not taken over:\n";
    }
    for (const LeftOut& each : mapping_.leftOut) {
      out_ << "#   " << printable(describe(each)) << '\n';
      writeRemedy(each.remedy);
    }
    writeRefusals();
    writeUnclear();
    out_ << "version: 1\nvm: " << yamlString(report_.vm)
         << "\ntopology: flat  # each device keeps its place in the guest\n";
  }

  // It can contain lines to paste into a mapping.
  void writeRemedy(const std::string& remedy) {
    for (const auto& line : splitLines(remedy)) {
      out_ << "#     " << printable(line) << '\n';
    }
  }

  void writeRefusals() {
    if (!mapping_.refusals.empty()) {
      out_ << "# `vfpass attach " << shellArgument(report_.vm) << "` would refuse now:\n";
    }
    for (const ImportRefusal& each : mapping_.refusals) {
      out_ << "#   " << printable(each.message) << '\n';
      writeRemedy(each.remedy);
    }
  }

  void writeUnclear() {
    if (!mapping_.unclear.empty()) {
      out_ << "# Files that set up these PFs at boot; `vfpass import --host` has their settings:\n";
    }
    for (const BootPolicy& policy : mapping_.unclear) {
      out_ << "#   " << printable(policy.file) << " (" << policy.manager
           << "): " << printable(policy.text) << '\n';
    }
  }

  void writeAllow() {
    out_ << (mapping_.allow.empty() ? "" : "allow:\n");
    for (const auto& [risk, reason] : mapping_.allow) {
      out_ << "  - " << toString(risk) << "  # " << printable(reason) << '\n';
    }
  }

  void writeNotes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) {
      out_ << "    # " << printable(note) << '\n';
    }
  }

  void writeFunctions(const char* list, bool gpus) {
    bool begun = false;
    for (const ImportedFunction& function : mapping_.functions) {
      if (function.isGpu != gpus) {
        continue;
      }
      out_ << (begun ? "" : std::string(list) + ":\n");
      begun = true;
      writeFunction(function);
    }
  }

  void writeFunction(const ImportedFunction& function) {
    out_ << "  - name: " << nameEntry(function.name) << '\n';
    writeNotes(function.notes);
    out_ << "    pci: " << quoted(toString(function.device))
         << (function.model.empty() ? "" : "  # " + printable(function.model)) << '\n'
         << "    adopt: true\n";
    if (!function.driver.empty()) {
      out_ << "    driver: " << function.driver << "  # the domain's XML\n";
    }
  }

  void writeVf(const ImportedVf& vf) {
    out_ << "  - name: " << nameEntry(vf.name) << '\n';
    writeNotes(vf.notes);
    out_ << "    pf: {pci: " << quoted(toString(vf.pf)) << "}"
         << (vf.pfNetdev.empty() ? "" : "  # " + printable(vf.pfNetdev)) << '\n'
         << "    index: " << vf.index << "  # " << toString(vf.device) << '\n'
         << "    adopt: true\n";
    forEachAttribute([&](const auto& row) {
      const auto& value = vf.settings.*row.member;
      if (value && row.attribute != Attribute::nodeGuid && row.attribute != Attribute::portGuid) {
        out_ << "    " << row.name << ": " << valueEntry(*value) << "  # "
             << sourceOf(vf, row.attribute) << '\n';
      }
    });
    writeGuids(vf);
    writeForm(vf);
  }

  void writeGuids(const ImportedVf& vf) {
    if (!vf.settings.nodeGuid || !vf.settings.portGuid) {
      return;
    }
    out_ << "    infiniband:\n      node-guid: " << valueEntry(*vf.settings.nodeGuid) << "  # "
         << sourceOf(vf, Attribute::nodeGuid)
         << "\n      port-guid: " << valueEntry(*vf.settings.portGuid) << "  # "
         << sourceOf(vf, Attribute::portGuid) << '\n';
  }

  void writeForm(const ImportedVf& vf) {
    const char* source = "  # the domain's XML\n";
    out_ << (vf.interfaceForm ? std::string("    interface: true") + source : "")
         << (vf.managed ? std::string("    managed: yes") + source : "");
    if (vf.teamingWith) {
      out_ << "    teaming: {with: " << nameEntry(*vf.teamingWith) << "}" << source;
    }
  }

  static std::string sourceOf(const ImportedVf& vf, Attribute attribute) {
    const auto found = vf.sources.find(attribute);
    return found == vf.sources.end() ? "" : printable(found->second);
  }

  const ImportReport& report_;
  const ImportedMapping& mapping_;
  std::ostringstream out_;
};

void writePolicy(std::ostream& out, const std::string& indent, const BootPolicy& policy) {
  out << indent << "# " << printable(policy.file) << " (" << policy.manager << ") sets "
      << printable(policy.text) << '\n';
  if (!policy.remedy.empty()) {
    out << indent << "#   " << printable(policy.remedy) << '\n';
  }
}

void writePf(std::ostream& out, const ImportedPf& pf) {
  out << "  - pf: {pci: " << quoted(toString(pf.pf)) << "}"
      << (pf.netdev.empty() ? "" : "  # " + printable(pf.netdev)) << '\n';
  for (const BootPolicy& policy : pf.policies) {
    writePolicy(out, "    ", policy);
  }
  if (pf.vfCount > 0) {  // a stated 0 would keep attach from creating VFs
    out << "    virtual-function-count: " << pf.vfCount << "  # "
        << (pf.countSource.empty() ? "now" : printable(pf.countSource)) << '\n';
  }
  if (pf.probesVfs) {
    out << "    probe-virtual-functions: true  # now; the host's driver binds to each new VF\n";
  }
  if (pf.eswitchMode) {
    out << "    embedded-switch-mode: " << toString(*pf.eswitchMode) << "  # now\n";
  }
  if (pf.link && pf.link->mtu > 0) {
    out << "    mtu: " << pf.link->mtu << "  # now\n";
  }
  if (pf.link && pf.link->up) {
    out << "    up: true  # now\n";
  }
}

}  // namespace

std::string mappingText(const ImportReport& report) { return MappingText(report).text(); }

std::string hostText(const ImportHostReport& report) {
  std::ostringstream out;
  out << "# Imported by `" << printable(report.command) << "`: what the host has now.\n"
      << "# `vfpass host show` compares it with the host, and `vfpass host apply` applies it; "
         "vfpass-host.service\n# does so at boot. Then the files that are named below must no "
         "longer "
         "set the same.\n";
  if (!report.host.unclear.empty()) {
    out << "# These do not say which PF they set up:\n";
  }
  for (const BootPolicy& policy : report.host.unclear) {
    writePolicy(out, "", policy);
  }
  out << "version: 1\npfs:\n";
  for (const ImportedPf& pf : report.host.pfs) {
    writePf(out, pf);
  }
  return out.str();
}

}  // namespace vfpass::report
