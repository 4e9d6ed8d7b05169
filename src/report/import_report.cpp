#include "vfpass/report/import_report.hpp"

#include <algorithm>
#include <ostream>

#include "json.hpp"

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

}  // namespace vfpass::report
