#include "support.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace vfpass::domain {
namespace {

class Chance {
 public:
  explicit Chance(std::mt19937& random) : random_(random) {}

  template <typename Number = unsigned>
  Number upTo(std::uint64_t limit) {
    return static_cast<Number>(std::uniform_int_distribution<std::uint64_t>(0, limit)(random_));
  }
  bool coin() { return upTo(1) == 1; }
  template <typename Make>
  auto maybe(Make make) -> std::optional<decltype(make())> {
    return coin() ? std::optional(make()) : std::nullopt;
  }

  std::string text() {
    std::string text(upTo<std::size_t>(20), ' ');
    for (auto& character : text) {
      character = static_cast<char>(upTo<unsigned char>(255));
    }
    return text;
  }
  std::string driver() {
    std::string name(upTo<std::size_t>(20), 'd');
    for (auto& character : name) {
      character = "ab_-09XZ"[upTo<std::size_t>(7)];
    }
    return name.starts_with('-') ? "x" + name : name;
  }
  PciAddress address() {
    return {upTo(0xffffffffU), upTo<std::uint8_t>(255), upTo<std::uint8_t>(31),
            upTo<std::uint8_t>(7)};
  }
  VfSettings settings() {
    VfSettings settings;
    forEachAttribute([&]<typename Value>(const AttributeRow<Value>& row) {
      settings.*row.member = maybe([this] {
        Value value{};
        fill(value);
        return value;
      });
    });
    return settings;
  }

 private:
  void fill(MacAddress& mac) {
    for (auto& byte : mac.bytes) {
      byte = upTo<std::uint8_t>(255);
    }
  }
  void fill(Vlan& vlan) {
    vlan = {upTo<std::uint16_t>(4094), upTo<std::uint8_t>(7),
            coin() ? VlanProtocol::dot1q : VlanProtocol::dot1ad};
  }
  void fill(Rate& rate) { rate = {upTo(0xffffffffU), upTo(0xffffffffU)}; }
  void fill(bool& value) { value = coin(); }
  void fill(LinkState& state) { state = static_cast<LinkState>(upTo(2)); }
  void fill(Guid& guid) { guid.value = upTo<std::uint64_t>(~std::uint64_t{0}); }
  void fill(std::uint16_t& value) { value = upTo<std::uint16_t>(2048); }

  std::mt19937& random_;
};

std::variant<LeasedVf, LeasedFunction> randomDevice(Chance& chance) {
  if (chance.coin()) {
    return LeasedFunction{chance.maybe([] { return std::string("nvgrace_gpu_vfio_pci"); }),
                          chance.maybe([&] { return static_cast<unsigned>(chance.upTo(255)); })};
  }
  LeasedVf vf;
  vf.index = chance.upTo(0xffffffffU);
  vf.count = chance.upTo(0xffffffffU);
  vf.infiniband = chance.coin();
  vf.settings = chance.settings();
  for (const auto attribute : allAttributes) {
    if (chance.coin()) {
      vf.required.insert(attribute);
    }
    if (chance.coin()) {
      vf.refused.insert(attribute);
    }
  }
  vf.interfaceForm = chance.coin();
  vf.teamingWith = chance.maybe([] { return std::string("net0"); });
  vf.migrationDriver = chance.maybe([] { return std::string(mlx5MigrationDriver); });
  return vf;
}

Lease randomLease(Chance& chance, std::size_t number) {
  Lease lease;
  lease.domain = caseUuid();
  lease.part = randomDevice(chance);
  lease.entry = "vf_" + std::to_string(number) + "-X";
  lease.pf = chance.address();
  lease.pfPath = chance.text();
  lease.pfSerial = chance.text();
  lease.device = chance.address();
  for (const auto allowance :
       {Allowance::sharedIommuGroup, Allowance::trust, Allowance::unsafeInterrupts,
        Allowance::netdevInUse, Allowance::unknownHolder, Allowance::disruption}) {
    if (chance.coin()) {
      lease.allow.insert(allowance);
    }
  }
  lease.managed = chance.coin();
  const auto bus = static_cast<std::uint8_t>(32 + number);
  const auto slot = static_cast<std::uint8_t>(4 + number);
  lease.guest = {{0, bus, 0, 0}, RootPort{bus, {0, 0, slot, 0}, chance.coin()}, {}};
  lease.original = {chance.driver(), chance.driver(), chance.settings(), chance.coin()};
  lease.generation = chance.upTo<std::uint64_t>(~std::uint64_t{0});
  return lease;
}

Lease sampleLease(const std::string& name, unsigned index) {
  Lease lease;
  lease.domain = caseUuid();
  lease.entry = name;
  lease.pf = {0, 0x3b, 0, 0};
  lease.pfPath = "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  lease.pfSerial = "MT2042X00001 <\"&'%>";
  vfOf(lease).index = index;
  vfOf(lease).count = 8;
  lease.device = {0, 0x3b, 0, static_cast<std::uint8_t>(2 + index)};
  vfOf(lease).settings.mac = MacAddress{{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(index)}};
  vfOf(lease).settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  vfOf(lease).settings.trust = false;
  vfOf(lease).required = {Attribute::mac, Attribute::vlan};
  vfOf(lease).teamingWith = "net0";
  lease.original.driver = "mlx5_core";
  lease.original.settings.linkState = LinkState::automatic;
  lease.generation = 7;
  return lease;
}

}  // namespace

std::string readCase(const std::string& name) {
  const std::string path = std::string(VFPASS_SOURCE_DIR "/tests/unit/domain/cases/") + name;
  const std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Uuid caseUuid() { return parseUuid("11111111-2222-3333-4444-555555555555").value(); }

std::vector<Lease> sampleLeases(const std::string& xml) {
  std::vector<Lease> leases{sampleLease("rail0", 0), sampleLease("rail1", 1)};
  vfOf(leases[1]).interfaceForm = true;
  const auto placements = placeDevices(xml, leases.size());
  for (std::size_t at = 0; at < leases.size(); ++at) {
    leases[at].guest = placements[at];
    leases[at].domainName = parseDomain(xml).name;
  }
  return leases;
}

std::vector<Lease> randomLeases(std::mt19937& random, std::size_t count) {
  Chance chance(random);
  std::vector<Lease> leases;
  for (std::size_t number = 0; number < count; ++number) {
    leases.push_back(randomLease(chance, number));
  }
  return leases;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string repeated(const std::string& text, std::size_t count) {
  std::string result;
  for (std::size_t at = 0; at < count; ++at) {
    result += text;
  }
  return result;
}

}  // namespace vfpass::domain
