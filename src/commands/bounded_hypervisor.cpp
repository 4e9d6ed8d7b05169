#include "command_session.hpp"

#include <utility>

namespace vfpass::commands {
namespace {

class BoundedHypervisor final : public Hypervisor {
 public:
  BoundedHypervisor(std::unique_ptr<Hypervisor> inner,
                    std::optional<std::chrono::milliseconds> timeout,
                    report::ProgressLine& progress)
      : inner_(std::move(inner)), timeout_(timeout), progress_(progress) {}

  std::string uri() override {
    return read([](Hypervisor& inner) { return inner.uri(); });
  }
  HypervisorVersions versions() override {
    return read([](Hypervisor& inner) { return inner.versions(); });
  }
  std::vector<NetworkDescription> listNetworks() override {
    return read([](Hypervisor& inner) { return inner.listNetworks(); });
  }
  std::optional<DomainDescription> findDomain(const std::string& nameOrUuid) override {
    return read([nameOrUuid](Hypervisor& inner) { return inner.findDomain(nameOrUuid); });
  }
  std::vector<DomainDescription> listDomains() override {
    return read([](Hypervisor& inner) { return inner.listDomains(); });
  }
  std::optional<Definition> readDefinition(const Uuid& domain) override {
    return read([domain](Hypervisor& inner) { return inner.readDefinition(domain); });
  }

  void defineDomain(const Definition& definition) override { inner_->defineDomain(definition); }
  void syncDefinitions() override { inner_->syncDefinitions(); }
  void attachDevice(const Uuid& domain, const std::string& xml) override {
    inner_->attachDevice(domain, xml);
  }
  void detachDevice(const Uuid& domain, const std::string& alias, std::chrono::milliseconds timeout,
                    const std::function<void()>& checkpoint) override {
    inner_->detachDevice(domain, alias, timeout, checkpoint);
  }
  void setLiveMetadata(const Uuid& domain, const std::string& element) override {
    inner_->setLiveMetadata(domain, element);
  }
  std::string askAgent(const Uuid& domain, const std::string& command,
                       std::chrono::seconds timeout) override {
    return inner_->askAgent(domain, command, timeout);
  }

 private:
  template <typename Question>
  std::invoke_result_t<Question, Hypervisor&> read(Question question) {
    if (silence_) {
      throw NoAnswer(*silence_);
    }
    const report::ProgressWait wait(progress_, awaitedLibvirt);
    try {
      // The abandoned call keeps the connection open.
      return answerWithin(
          timeout_, [inner = inner_, question = std::move(question)] { return question(*inner); });
    } catch (const NoAnswer& error) {
      silence_ = error;
      throw;
    }
  }

  std::shared_ptr<Hypervisor> inner_;
  std::optional<std::chrono::milliseconds> timeout_;
  report::ProgressLine& progress_;
  std::optional<NoAnswer> silence_;
};

}  // namespace

NoAnswer::NoAnswer(std::chrono::milliseconds timeout)
    : Error("libvirt did not answer within " +
                std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) +
                " s",
            "restart its daemon, which stops no VM: `systemctl restart virtqemud` or `systemctl "
            "restart libvirtd`") {}

std::unique_ptr<Hypervisor> boundedHypervisor(std::unique_ptr<Hypervisor> inner,
                                              std::optional<std::chrono::milliseconds> timeout,
                                              report::ProgressLine& progress) {
  return std::make_unique<BoundedHypervisor>(std::move(inner), timeout, progress);
}

}  // namespace vfpass::commands
