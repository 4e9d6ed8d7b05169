#include "vfpass/session/invoking_user.hpp"

#include <pwd.h>

#include <array>
#include <cstdlib>
#include <limits>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::session {
namespace {

// The kernel's AUDIT_UID_UNSET: a process that no login started.
constexpr unsigned unset = std::numeric_limits<unsigned>::max();

std::optional<unsigned> parseUserId(std::string_view text) {
  const auto id = parseNumber(trim(text));
  return id && *id < unset ? std::optional(static_cast<unsigned>(*id)) : std::nullopt;
}

// Now, and not when the entry is read: by then the user may have been removed, and the ID have
// another owner.
std::string nameOfUser(unsigned id) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::to_string(id) : found->pw_name;
}

std::string readLoginUid() {
  constexpr std::size_t longest = 16;
  try {
    return readBoundedFile("/proc/self/loginuid", longest);
  } catch (const ReadRefused&) {  // a kernel without audit
    return {};
  }
}

}  // namespace

std::optional<unsigned> invokingUserId(const std::string& loginUid, const char* sudoUid) {
  const auto login = parseUserId(loginUid);
  return login || sudoUid == nullptr ? login : parseUserId(sudoUid);
}

std::optional<events::Invoker> invokingUser() {
  const auto id = invokingUserId(readLoginUid(), std::getenv("SUDO_UID"));
  return id ? std::optional(events::Invoker{nameOfUser(*id), *id}) : std::nullopt;
}

}  // namespace vfpass::session
