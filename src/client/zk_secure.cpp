// The parts of the C client that only some builds of it have. The header declares them for its own build alone, so that
// the declarations here are copies of those of ZooKeeper 3.8. They are weak, which finds them in a static C client, and
// are looked up at run time in a shared one: it need not be the one that the program was linked with.
#include "client/zk_secure.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/select.h>
#include <zookeeper/zookeeper.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/version.hpp>

#include "base/socket.hpp"
#include "client/client.hpp"

extern "C" {
struct zkrecipes_sasl_callback {  // sasl_callback_t of <sasl/sasl.h>
    unsigned long id;
    void (*function)();  // of another type for each id
    void* context;
};
struct zkrecipes_sasl_params {  // zoo_sasl_params_t of <zookeeper/zookeeper.h>
    const char* service;
    const char* host;
    const char* mechanisms;
    const zkrecipes_sasl_callback* callbacks;
};
[[gnu::weak]] zhandle_t* zookeeper_init_ssl(const char* host, const char* cert, watcher_fn watcher, int recv_timeout,
                                            const clientid_t* id, void* context, int flags);
[[gnu::weak]] zhandle_t* zookeeper_init_sasl(const char* host, watcher_fn watcher, int recv_timeout,
                                             const clientid_t* id, void* context, int flags, log_callback_fn log,
                                             zkrecipes_sasl_params* params);
[[gnu::weak]] int sasl_client_init(const zkrecipes_sasl_callback* callbacks);
}

namespace zkrecipes::internal {
namespace {

// Of <sasl/sasl.h>.
constexpr unsigned long kCallbackUser = 0x4001, kCallbackAuthName = 0x4002, kCallbackPass = 0x4004,
                        kCallbackRealm = 0x4008;
constexpr int kSaslOk = 0;

const void* module_of(const void* function, const char** file = nullptr) noexcept {
    Dl_info info{};
    if (::dladdr(function, &info) == 0) return nullptr;
    if (file != nullptr) *file = info.dli_fname;
    return info.dli_fbase;
}
const void* interest() noexcept { return reinterpret_cast<void*>(&zookeeper_interest); }

/// Null if the C client does not have it. Another one, which the program has besides, may.
template <class Function>
Function* found(Function* linked, const char* name) noexcept {
    auto* const function = linked != nullptr ? linked : reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
    if (function == nullptr) return nullptr;
    return module_of(reinterpret_cast<void*>(function)) == module_of(interest()) ? function : nullptr;
}
auto* init_ssl() noexcept { return found(&zookeeper_init_ssl, "zookeeper_init_ssl"); }
auto* init_sasl() noexcept { return found(&zookeeper_init_sasl, "zookeeper_init_sasl"); }
/// Of Cyrus SASL.
auto* begin_sasl() noexcept {
    auto* linked = &sasl_client_init;
    return linked != nullptr ? linked
                             : reinterpret_cast<decltype(&sasl_client_init)>(::dlsym(RTLD_DEFAULT, "sasl_client_init"));
}

/// During a TLS handshake the C client waits by select(), which writes past the end of its set for a descriptor of 1024
/// or more.
void check_descriptors() {
    constexpr int kFurther = 24;  // that a session takes
    const Socket next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (next && next.get() + kFurther < FD_SETSIZE) return;
    throw Error(
        Errc::out_of_resources, "session", {},
        "SessionOptions::tls: the TLS of the ZooKeeper C client works only with descriptors below 1024, and this "
        "program has nearly as many open files; open the session earlier, or close some files");
}

/// sasl_secret_t: the length, then the bytes.
using Secret = std::vector<unsigned char>;

int answer_name(void* context, int, const char** result, unsigned* length) {
    const auto& name = *static_cast<const std::string*>(context);
    *result = name.c_str();
    if (length != nullptr) *length = static_cast<unsigned>(name.size());
    return kSaslOk;
}

int answer_realm(void* context, int, const char** offered, const char** result) {
    const auto& realm = *static_cast<const std::string*>(context);
    *result = !realm.empty() ? realm.c_str() : offered != nullptr && *offered != nullptr ? *offered : "";
    return kSaslOk;
}

int answer_secret(void*, void* context, int, unsigned char** result) {
    *result = static_cast<Secret*>(context)->data();
    return kSaslOk;
}

template <class Function>
void (*as_callback(Function function))() {
    return reinterpret_cast<void (*)()>(function);
}

[[noreturn]] void lacks(const char* option, const char* library, const char* remedy) {
    throw Error(Errc::unsupported, "session", {},
                std::string("SessionOptions::") + option + ": the ZooKeeper C client of this program (" +
                    client_version() + ") was built without " + library +
                    ", and a connection without it is not made; " + remedy + " (docs/encryption.md)");
}

/// The file of the threaded C client, if the program has that too, and the functions of both take each other's place.
/// They have the same names, but for the synchronous functions, which only the threaded one has.
std::string threaded_client() {
    const void* const synchronous = ::dlsym(RTLD_DEFAULT, "zoo_create");
    const char* file = nullptr;
    if (synchronous == nullptr || module_of(synchronous, &file) == nullptr) return {};
    return ::dlsym(RTLD_DEFAULT, "zookeeper_interest") == interest() ? file : "";
}

/// The C client takes lists apart by strtok.
std::mutex& lists_mutex() {
    static std::mutex mutex;
    return mutex;
}

}  // namespace

class SaslAnswers {
public:
    explicit SaslAnswers(const SaslOptions& wanted)
        : options(wanted),
          secret(sizeof(unsigned long) + wanted.password.size() + 1),
          callbacks{{{kCallbackUser, as_callback(&answer_name), &options.user},
                     {kCallbackAuthName, as_callback(&answer_name), &options.user},
                     {kCallbackRealm, as_callback(&answer_realm), &options.realm},
                     {kCallbackPass, as_callback(&answer_secret), &secret},
                     {0, nullptr, nullptr}}} {
        const unsigned long length = wanted.password.size();
        std::memcpy(secret.data(), &length, sizeof length);
        std::memcpy(secret.data() + sizeof length, wanted.password.data(), wanted.password.size());
        options.password.clear();
    }
    SaslAnswers(const SaslAnswers&) = delete;
    SaslAnswers& operator=(const SaslAnswers&) = delete;

    SaslOptions options;
    Secret secret;
    const std::array<zkrecipes_sasl_callback, 5> callbacks;
};

void SaslAnswersDelete::operator()(SaslAnswers* answers) const noexcept { delete answers; }
SaslAnswersPointer make_sasl_answers(const SaslOptions& options) {
    return SaslAnswersPointer(new SaslAnswers(options));
}

bool client_has_tls() noexcept { return init_ssl() != nullptr; }
bool client_has_sasl() noexcept { return init_sasl() != nullptr && begin_sasl() != nullptr; }

void check_client_for(const ClientOptions& options) {
    static const std::string threaded = threaded_client();
    if (!threaded.empty()) {
        throw Error(Errc::unsupported, "session", {},
                    "this program links the threaded ZooKeeper C client, too (" + threaded +
                        "), and its functions have the names of those of the single-threaded one, which zkrecipes "
                        "needs: link the shared library of zkrecipes, which keeps its C client to itself");
    }
    if (options.tls && !client_has_tls()) {
        lacks("tls", "OpenSSL", "link a C client that was built with -DWITH_OPENSSL=ON, or use stunnel");
    }
    if (options.tls) check_descriptors();
    if (options.sasl && !client_has_sasl()) {
        lacks("sasl", "Cyrus SASL", "link a C client that was built with -DWITH_CYRUS_SASL=ON");
    }
    if (!options.sasl) return;
    static const int initialized = begin_sasl()(nullptr);
    if (initialized != kSaslOk) {
        throw Error(Errc::unsupported, "session", {},
                    "SessionOptions::sasl: the library of Cyrus SASL cannot be initialized (" +
                        std::to_string(initialized) + ")");
    }
}

zhandle_t* init_handle(const HandleCall& call, const std::optional<TlsOptions>& tls, SaslAnswers* sasl) {
    const std::lock_guard lock(lists_mutex());
    errno = 0;  // not every failure sets one
    if (tls) {
        // The last part is a passphrase that no key has: without one, OpenSSL would ask for it on the terminal.
        const std::string files = tls->ca_file + "," + tls->certificate_file + "," + tls->key_file + ",-";
        zhandle_t* const zh = init_ssl()(call.hosts.c_str(), files.c_str(), call.watcher, call.timeout_ms, nullptr,
                                         call.context, call.flags);
        if (zh != nullptr) zoo_set_log_callback(zh, call.log);
        return zh;
    }
    if (sasl != nullptr) {
        zkrecipes_sasl_params params{sasl->options.service.c_str(), sasl->options.host.c_str(),
                                     sasl->options.mechanism.c_str(), sasl->callbacks.data()};
        return init_sasl()(call.hosts.c_str(), call.watcher, call.timeout_ms, nullptr, call.context, call.flags,
                           call.log, &params);
    }
    return zookeeper_init2(call.hosts.c_str(), call.watcher, call.timeout_ms, nullptr, call.context, call.flags,
                           call.log);
}

void set_servers_of(zhandle_t* zh, const std::string& list) {
    const std::lock_guard lock(lists_mutex());
    zoo_set_servers(zh, list.c_str());
}

bool sasl_has_failed(zhandle_t* zh) { return zoo_state(zh) == ZOO_AUTH_FAILED_STATE; }

}  // namespace zkrecipes::internal
