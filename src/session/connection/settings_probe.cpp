#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "base/socket.hpp"
#include "session/connection/settings_check.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kLongestSettings = 64 * 1024;  // it lists the members of the ensemble

class SocketSettingsProbe final : public SettingsProbe {
public:
    explicit SocketSettingsProbe(const std::shared_ptr<Runtime>& runtime) : runtime_(runtime) {}

    void ask(std::string server, std::chrono::milliseconds limit, std::function<void(std::string)> done) override {
        const auto runtime = runtime_.lock();
        if (!runtime) return;
        runtime->post(Lane::blocking, [runtime, server = std::move(server), limit, done = std::move(done)] {
            runtime->post(Lane::protocol, [done, said = answer_of(*runtime, server, limit)] { done(said); });
        });
    }

private:
    /// Until the server hangs up, as it does after its answer.
    static std::string answer_of(Runtime& runtime, const std::string& server, std::chrono::milliseconds limit) {
        const Socket socket = start_connect(server);  // the session is connected to an address
        if (!socket) return {};
        const Instant until = runtime.now() + limit;
        const auto ready = [&](short events) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - runtime.now());
            pollfd poll{socket.get(), events, 0};
            return left.count() > 0 && ::poll(&poll, 1, static_cast<int>(left.count())) == 1;
        };
        if (!ready(POLLOUT) || ::send(socket.get(), "conf", 4, MSG_NOSIGNAL) != 4) return {};
        std::string answer;
        std::array<char, 2048> buffer{};
        while (answer.size() < kLongestSettings && ready(POLLIN)) {
            const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
            if (got <= 0) break;
            answer.append(buffer.data(), static_cast<std::size_t>(got));
        }
        return answer;
    }

    const std::weak_ptr<Runtime> runtime_;  // its own queue may hold the last reference to this object
};

}  // namespace

std::shared_ptr<SettingsProbe> make_settings_probe(std::shared_ptr<Runtime> runtime) {
    return std::make_shared<SocketSettingsProbe>(runtime);
}

}  // namespace zkrecipes::internal
