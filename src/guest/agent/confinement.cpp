#include "vfpass/agent/confinement.hpp"

#include <algorithm>
#include <cctype>

#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::agent {
namespace {

// The shell's own context, then the mode: the type may not be allowed to read it. cat appends no
// newline to a context, which may end with a null byte.
constexpr const char* contextScript = R"sh(
context=$(tr -d '\000' </proc/self/attr/current 2>/dev/null) || exit 1
enforce=$(cat /sys/fs/selinux/enforce 2>/dev/null)
echo "$context $enforce"
)sh";

}  // namespace

bool isConfined(const std::string& context) {
  constexpr std::size_t longest = 256;
  if (context.size() > longest || !std::ranges::all_of(context, [](unsigned char each) {
        return std::isalnum(each) != 0 || each == '_' || each == ':' || each == '.' ||
               each == ',' || each == '-';
      })) {
    return false;
  }
  // user:role:type:level
  const auto role = context.find(':');
  const auto type = role == std::string::npos ? role : context.find(':', role + 1);
  if (type == std::string::npos) {
    return false;
  }
  return context.substr(type + 1, context.find(':', type + 1) - type - 1) == "virt_qemu_ga_t";
}

// The boolean alone changes nothing for a shell: only a program with this file type leaves the
// agent's type (virt_qemu_ga_unconfined_selinux(8), "ENTRYPOINTS").
std::string confinementRemedy() {
  return "in the guest: install vfpass-probe as /usr/libexec/vfpass/vfpass-probe, then run "
         "`setsebool -P virt_qemu_ga_run_unconfined on`, `semanage fcontext -a -t "
         "virt_qemu_ga_unconfined_exec_t /usr/libexec/vfpass/vfpass-probe` and `restorecon -v "
         "/usr/libexec/vfpass/vfpass-probe`";
}

std::optional<std::string> findConfinement(Agent& agent) {
  try {
    const ExecResult result = runShell(agent, contextScript, {"vfpass"});
    const std::string line = firstLine(result.out);
    const auto space = line.find(' ');
    const std::string context = line.substr(0, space);
    const bool permissive = space != std::string::npos && line.substr(space + 1) == "0";
    if (result.exitCode == 0 && !permissive && isConfined(context)) {
      return context;
    }
  } catch (const AgentUnavailable&) {
    // The caller reports the problem that came first.
  }
  return std::nullopt;
}

}  // namespace vfpass::agent
