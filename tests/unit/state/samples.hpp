#pragma once

#include <random>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::state {

Uuid uuidOf(std::uint8_t number);
/// A lease in which no member has its default value.
Lease sampleLease(std::uint8_t domain, const std::string& name, unsigned vfIndex);
/// A plan with one step of each kind.
Plan samplePlan(std::uint8_t domain);

/// The error that `call` throws.
template <typename Call>
Error errorOf(Call call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    return error;
  }
  return Error("no failure");
}

/// Random values for property tests: every member, every kind, strings of arbitrary bytes.
class Generator {
 public:
  explicit Generator(unsigned seed) : engine_(seed) {}

  std::uint64_t number(std::uint64_t maximum);
  bool flag() { return number(1) == 1; }
  std::string text();
  std::string driver();
  PciAddress pci();
  VfSettings settings();
  std::vector<GuestController> controllers();
  std::variant<LeasedVf, LeasedFunction> device();
  Lease lease();
  Action action();

 private:
  template <typename Value>
  std::optional<Value> perhaps(Value value) {
    return flag() ? std::optional<Value>(value) : std::nullopt;
  }
  Uuid uuid();
  // One for each type of an attribute's value.
  void fill(MacAddress& mac);
  void fill(Vlan& vlan);
  void fill(Rate& rate);
  void fill(bool& value);
  void fill(LinkState& state);
  void fill(Guid& guid);
  void fill(std::uint16_t& value);
  std::set<Attribute> attributes();
  ConfigureVfs configure();
  EditDomain edit();

  std::mt19937_64 engine_;
};

}  // namespace vfpass::state
