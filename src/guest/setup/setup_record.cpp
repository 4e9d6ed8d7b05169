#include "vfpass/setup/setup_record.hpp"

#include <algorithm>
#include <array>

#include "guest_files.hpp"
#include "vfpass/agent/reply.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/error.hpp"

namespace vfpass::setup {
namespace {

using Json = nlohmann::json;

constexpr int knownVersion = 1;

const JsonSource recordSource{
    std::string("invalid ") + recordPath + " in the guest",
    "repair it, or remove it in the guest; without it the state from before the first set-up "
    "cannot be restored"};

Error invalid(const std::string& why) { return badJson(recordSource, why); }

// Whether the path is START...END, with only characters of a mapping's names between them.
bool isNamed(const std::string& path, const std::string& start, const std::string& end) {
  constexpr const char* letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return path.size() > start.size() + end.size() && path.starts_with(start) &&
         path.ends_with(end) &&
         path.substr(start.size(), path.size() - start.size() - end.size())
                 .find_first_not_of(letters) == std::string::npos;
}

// Directories that a set-up may create, and that undo removes if they are empty.
bool isSetupFolder(const std::string& folder) {
  constexpr std::array folders = {connectionFolder,      networkdFolder,        interfacesFolder,
                                  "/etc/netplan",        "/etc/vfpass",         "/etc/sysctl.d",
                                  "/etc/modules-load.d", "/etc/systemd/system", "/etc/modprobe.d"};
  return std::find(std::begin(folders), std::end(folders), folder) != std::end(folders);
}

Json fileJson(const std::string& path, const FileState& file) {
  Json json{{"path", path}, {"exists", file.exists}};
  if (file.exists) {
    json.update({{"mode", file.mode},
                 {"user", file.user},
                 {"group", file.group},
                 {"content", agent::encodeBase64(file.content)}});
  }
  return json;
}

Json numberOrNull(const std::optional<unsigned>& value) { return value ? Json(*value) : Json(); }

Json portJson(const std::string& address, const RecordedPort& port) {
  const NetdevState& was = port.original;
  Json json{
      {"address", address},
      {"original",
       {{"mtu", was.mtu},
        {"up", was.up},
        {"addresses", was.addresses},
        {"arp_announce", numberOrNull(was.arpAnnounce)},
        {"arp_ignore", numberOrNull(was.arpIgnore)}}},
      {"ours",
       {{"addresses", port.addresses}, {"mtu", port.mtu}, {"up", port.up}, {"arp", port.arp}}}};
  if (!port.givenName.empty()) {
    json["original"]["name"] = port.originalName;
    json["ours"]["name"] = port.givenName;
  }
  return json;
}

std::set<std::string> addressesOf(const JsonReader& object) {
  std::set<std::string> addresses;
  for (const JsonReader& each : object["addresses"].listOrEmpty()) {
    const auto address = canonicalAddress(each.textOr(""));
    if (!address) {
      throw invalid("invalid IP address");
    }
    addresses.insert(*address);
  }
  return addresses;
}

FileState readFile(const JsonReader& json) {
  FileState file;
  file.exists = json["exists"].flagOr(false);
  if (file.exists) {
    constexpr unsigned allBits = 07777;
    file.mode = json["mode"].requireNumber(allBits);
    file.user = json["user"].requireNumber<unsigned>();
    file.group = json["group"].requireNumber<unsigned>();
    file.content = agent::decodeBase64(json["content"].textOr(""));
  }
  return file;
}

// Empty if the record has none, as those of earlier versions.
std::string nameOf(const JsonReader& object) {
  if (object["name"].json().is_null()) {
    return "";
  }
  const std::string name = object["name"].textOr("");
  if (!isUsableName(name)) {
    throw invalid("invalid interface name");
  }
  return name;
}

RecordedPort readPort(const JsonReader& json) {
  const JsonReader original = json["original"];
  const JsonReader ours = json["ours"];
  if (nameOf(original).empty() != nameOf(ours).empty()) {
    throw invalid("a port has only one of two interface names");
  }
  return {{original["mtu"].requireNumber<unsigned>(), original["up"].flagOr(false),
           addressesOf(original), original["arp_announce"].numberOrNone<unsigned>(),
           original["arp_ignore"].numberOrNone<unsigned>()},
          addressesOf(ours),
          ours["mtu"].flagOr(false),
          ours["up"].flagOr(false),
          ours["arp"].flagOr(false),
          nameOf(original),
          nameOf(ours)};
}

}  // namespace

bool isSetupPath(const std::string& path) {
  return std::ranges::find(setupFiles, path) != setupFiles.end() ||
         isNamed(path, std::string(connectionFolder) + "/vfpass-", ".nmconnection") ||
         isNamed(path, std::string(networkdFolder) + "/10-vfpass-", ".network") ||
         isNamed(path, std::string(networkdFolder) + "/10-vfpass-", ".link");
}

std::string encodeRecord(const SetupRecord& record) {
  Json json{{"version", knownVersion},
            {"written_by", "vfpass guest-setup; --undo restores what is kept here"},
            {"files", Json::array()},
            {"folders", record.folders},
            {"ports", Json::array()},
            {"peer_memory", record.peerMemory}};
  for (const auto& [path, file] : record.files) {
    json["files"].push_back(fileJson(path, file));
  }
  for (const auto& [address, port] : record.ports) {
    json["ports"].push_back(portJson(address, port));
  }
  return json.dump(1) + "\n";
}

SetupRecord decodeRecord(const std::string& text) {
  Json document;
  try {
    document = agent::parseReply(text);
  } catch (const Error&) {
    throw invalid("not valid JSON");
  }
  const JsonReader json(document, recordSource);
  if (json["version"].numberOrNone<int>() != knownVersion) {
    throw invalid("unknown version");
  }
  SetupRecord record;
  // Undo writes and removes what the record names, so only our own files and directories are
  // possible.
  for (const JsonReader& each : json["files"].listOrEmpty()) {
    const std::string path = each["path"].textOr("");
    if (!isSetupPath(path)) {
      throw invalid("it names a file that guest-setup never writes");
    }
    record.files[path] = readFile(each);
  }
  for (const JsonReader& each : json["folders"].listOrEmpty()) {
    const std::string folder = each.textOr("");
    if (!isSetupFolder(folder)) {
      throw invalid("it names a directory that guest-setup never creates");
    }
    record.folders.insert(folder);
  }
  // Ports by MAC address or port GUID.
  for (const JsonReader& each : json["ports"].listOrEmpty()) {
    const std::string address = each["address"].textOr("");
    if (!parseMacAddress(address) && !parseGuid(address)) {
      throw invalid("a port has no valid hardware address");
    }
    record.ports[address] = readPort(each);
  }
  record.peerMemory = json["peer_memory"].flagOr(false);
  return record;
}

}  // namespace vfpass::setup
