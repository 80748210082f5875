#include "client/tls/zk_tls_check.hpp"

#include <dlfcn.h>
#include <sys/prctl.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>

#include <zkrecipes/error.hpp>

#include "base/process.hpp"

namespace zkrecipes::internal {
namespace {

constexpr int kClassOfContexts = 1;                  // CRYPTO_EX_INDEX_SSL_CTX
constexpr char kThreads[] = "zkr-tls:";              // how the names of the drivers' threads begin
constexpr int kOutOfMemory = 17, kNotSpecified = 1;  // X509_V_ERR_…

using OnNew = void(void* context, void*, void*, int, long, void*);

/// The functions of OpenSSL, which are the same in 1.1 and 3.
struct OpenSslChecks {
    int (*new_index)(int, long, void*, OnNew*, void*, void*);
    void (*set_check)(void*, int (*)(void*, void*), void*);
    void* (*store_new)();
    void (*store_free)(void*);
    int (*store_load)(void*, const char*, const char*);
    void* (*check_new)();
    void (*check_free)(void*);
    int (*check_init)(void*, void*, void*, void*);
    int (*check_purpose)(void*, const char*);
    void* (*certificate)(const void*);
    void* (*others)(const void*);
    void* (*parameters)(const void*);
    int (*auth_level)(const void*);
    void (*set_auth_level)(void*, int);
    int (*set_host)(void*, const char*, std::size_t);
    int (*check)(void*);
    int (*error)(const void*);
    void (*set_error)(void*, int);
    bool complete = true;

    OpenSslChecks() {
        find(new_index, "CRYPTO_get_ex_new_index");
        find(set_check, "SSL_CTX_set_cert_verify_callback");
        find(store_new, "X509_STORE_new");
        find(store_free, "X509_STORE_free");
        find(store_load, "X509_STORE_load_locations");
        find(check_new, "X509_STORE_CTX_new");
        find(check_free, "X509_STORE_CTX_free");
        find(check_init, "X509_STORE_CTX_init");
        find(check_purpose, "X509_STORE_CTX_set_default");
        find(certificate, "X509_STORE_CTX_get0_cert");
        find(others, "X509_STORE_CTX_get0_untrusted");
        find(parameters, "X509_STORE_CTX_get0_param");
        find(auth_level, "X509_VERIFY_PARAM_get_auth_level");
        find(set_auth_level, "X509_VERIFY_PARAM_set_auth_level");
        find(set_host, "X509_VERIFY_PARAM_set1_host");
        find(check, "X509_verify_cert");
        find(error, "X509_STORE_CTX_get_error");
        find(set_error, "X509_STORE_CTX_set_error");
    }
    template <class Function>
    void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
        if (function == nullptr) complete = false;
    }
};

const OpenSslChecks& openssl_checks() {
    static const OpenSslChecks functions;
    return functions;
}

/// Those that live, by the names of their threads.
struct Registry {
    std::mutex mutex;
    std::map<std::string, TlsTrust*> entries;
    std::uint32_t last = 0;
};
Registry& registry() {
    static constinit PerProcess<Registry> instance;
    return instance.get();
}

int check_certificate(void* original, void* trust) { return static_cast<TlsTrust*>(trust)->accepts(original) ? 1 : 0; }

/// For each new SSL_CTX in this process, on the thread that makes it. The C client makes one for each connection, on
/// the thread that drives it. OpenSSL sets nothing of what this sets afterwards, nor does the C client. A new SSL would
/// not do: since OpenSSL 3.2, it does not have its SSL_CTX yet when OpenSSL tells of it.
void on_new_context(void* context, void*, void*, int, long, void*) {
    if (context == nullptr) return;
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    if (std::string(name).rfind(kThreads, 0) != 0) return;
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.entries.find(name);
    if (found == all.entries.end()) return;
    openssl_checks().set_check(context, &check_certificate, found->second);
}

bool begin_to_listen() {
    return openssl_checks().complete &&
           openssl_checks().new_index(kClassOfContexts, 0, nullptr, &on_new_context, nullptr, nullptr) >= 0;
}

}  // namespace

TlsTrust::TlsTrust(const TlsOptions& tls) : tls_(tls) {
    static const bool listening = begin_to_listen();
    if (!listening) {
        throw Error(Errc::unsupported, "session", {},
                    "SessionOptions::tls: the OpenSSL of the ZooKeeper C client is not a shared library, so its checks "
                    "cannot be completed; link the C client with libssl.so and libcrypto.so (docs/encryption.md)");
    }
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    char name[16];
    do {
        std::snprintf(name, sizeof name, "%s%x", kThreads, ++all.last & 0xffffffU);
    } while (!all.entries.emplace(name, this).second);
    thread_name_ = name;
}

TlsTrust::~TlsTrust() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.entries.erase(thread_name_);
}

bool TlsTrust::accepts(void* original) {
    const OpenSslChecks& ssl = openssl_checks();
    const std::unique_ptr<void, void (*)(void*)> store(ssl.store_new(), ssl.store_free);
    const std::unique_ptr<void, void (*)(void*)> own(ssl.check_new(), ssl.check_free);
    if (!store || !own || ssl.store_load(store.get(), tls_.ca_file.c_str(), nullptr) != 1 ||
        ssl.check_init(own.get(), store.get(), ssl.certificate(original), ssl.others(original)) != 1 ||
        ssl.check_purpose(own.get(), "ssl_server") != 1 ||
        (!tls_.server_name.empty() &&
         ssl.set_host(ssl.parameters(own.get()), tls_.server_name.c_str(), tls_.server_name.size()) != 1)) {
        ssl.set_error(original, kOutOfMemory);
        return false;
    }
    ssl.set_auth_level(ssl.parameters(own.get()), ssl.auth_level(ssl.parameters(original)));
    const bool accepted = ssl.check(own.get()) == 1;
    const int error = ssl.error(own.get());
    ssl.set_error(original, accepted || error != 0 ? error : kNotSpecified);
    if (accepted) checked_ = true;
    return accepted;
}

}  // namespace zkrecipes::internal
