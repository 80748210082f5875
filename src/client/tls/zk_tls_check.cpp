// Finds out what the C client does not say. It uses the OpenSSL that the C client has brought into the process, if it
// is a shared library: the library itself needs none. The functions are the same in OpenSSL 1.1 and 3.
#include "client/tls/zk_tls_check.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <memory>

#include "base/socket.hpp"
#include "client/tls/zk_relay_link.hpp"

namespace zkrecipes::internal {
namespace {

constexpr int kPem = 1, kVerifyPeer = 1, kWantRead = 2, kWantWrite = 3;  // of <openssl/ssl.h>

struct OpenSsl {
    void* (*method)();
    void* (*context_new)(void*);
    void (*context_free)(void*);
    int (*load_authorities)(void*, const char*, const char*);
    int (*use_certificate)(void*, const char*);
    int (*use_key)(void*, const char*, int);
    int (*check_key)(void*);
    void (*set_passphrase)(void*, void*);
    void (*set_verify)(void*, int, void*);
    void* (*connection_new)(void*);
    void (*connection_free)(void*);
    int (*set_descriptor)(void*, int);
    int (*set_host)(void*, const char*);
    int (*connect)(void*);
    int (*get_error)(const void*, int);
    long (*verify_result)(const void*);
    const char* (*verify_text)(long);
    unsigned long (*last_error)();
    const char* (*error_text)(unsigned long);
    void (*clear_errors)();

    bool found() const { return complete_; }
    OpenSsl() {
        find(method, "TLS_client_method");
        find(context_new, "SSL_CTX_new");
        find(context_free, "SSL_CTX_free");
        find(load_authorities, "SSL_CTX_load_verify_locations");
        find(use_certificate, "SSL_CTX_use_certificate_chain_file");
        find(use_key, "SSL_CTX_use_PrivateKey_file");
        find(check_key, "SSL_CTX_check_private_key");
        find(set_passphrase, "SSL_CTX_set_default_passwd_cb_userdata");
        find(set_verify, "SSL_CTX_set_verify");
        find(connection_new, "SSL_new");
        find(connection_free, "SSL_free");
        find(set_descriptor, "SSL_set_fd");
        find(set_host, "SSL_set1_host");
        find(connect, "SSL_connect");
        find(get_error, "SSL_get_error");
        find(verify_result, "SSL_get_verify_result");
        find(verify_text, "X509_verify_cert_error_string");
        find(last_error, "ERR_peek_last_error");
        find(error_text, "ERR_reason_error_string");
        find(clear_errors, "ERR_clear_error");
    }

private:
    template <class Function>
    void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
        if (function == nullptr) complete_ = false;
    }
    bool complete_ = true;
};

const OpenSsl& openssl() {
    static const OpenSsl functions;
    return functions;
}

std::string reason() {
    const char* const text = openssl().error_text(openssl().last_error());
    return text == nullptr ? "OpenSSL gives no reason" : text;
}

using Context = std::unique_ptr<void, void (*)(void*)>;

Context make_context(const TlsOptions& tls, std::string& problem) {
    static char no_passphrase[] = "-";  // otherwise OpenSSL would ask for one on the terminal
    const OpenSsl& ssl = openssl();
    ssl.clear_errors();
    Context context(ssl.context_new(ssl.method()), ssl.context_free);
    if (!context) {
        problem = "OpenSSL cannot begin (" + reason() + ")";
        return context;
    }
    ssl.set_passphrase(context.get(), no_passphrase);
    ssl.set_verify(context.get(), kVerifyPeer, nullptr);
    if (ssl.load_authorities(context.get(), tls.ca_file.c_str(), nullptr) != 1) {
        problem = "ca_file: " + tls.ca_file + " holds no certificate in PEM that can be used (" + reason() + ")";
    } else if (ssl.use_certificate(context.get(), tls.certificate_file.c_str()) != 1) {
        problem = "certificate_file: " + tls.certificate_file + " holds no certificate in PEM that can be used (" +
                  reason() + ")";
    } else if (ssl.use_key(context.get(), tls.key_file.c_str(), kPem) != 1) {
        problem = "key_file: " + tls.key_file + " holds no key in PEM that fits the certificate " +
                  tls.certificate_file + " and is not encrypted (" + reason() + ")";
    } else if (ssl.check_key(context.get()) != 1) {
        problem = "key_file: " + tls.key_file + " does not fit the certificate " + tls.certificate_file;
    }
    return context;
}

/// OpenSSL writes by write(), which raises SIGPIPE when the server has closed.
class NoBrokenPipe {
public:
    NoBrokenPipe() {
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, &before_);
    }
    ~NoBrokenPipe() {
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        const timespec at_once{};
        if (sigismember(&before_, SIGPIPE) == 0) static_cast<void>(sigtimedwait(&pipe, nullptr, &at_once));
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoBrokenPipe(const NoBrokenPipe&) = delete;
    NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

private:
    sigset_t before_;
};

}  // namespace

std::string why_unusable(const TlsOptions& tls) {
    std::string problem;
    if (openssl().found()) make_context(tls, problem);
    return problem;
}

std::string why_no_handshake(const std::string& server, const TlsOptions& tls, std::chrono::milliseconds limit) {
    if (!openssl().found()) return "this client ended the TLS handshake";
    const OpenSsl& ssl = openssl();
    std::string problem;
    const Context context = make_context(tls, problem);
    if (!problem.empty()) return problem;
    const auto until = RelayLink::Clock::now() + limit;
    const auto wait = [&](int fd, short events) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - RelayLink::Clock::now()).count();
        pollfd ready{fd, events, 0};
        return left > 0 && ::poll(&ready, 1, static_cast<int>(left)) == 1;
    };
    const Socket fd = start_connect(server);
    if (!fd || !wait(fd.get(), POLLOUT)) return "it does not accept a further connection";
    const NoBrokenPipe no_broken_pipe;
    const Context connection(ssl.connection_new(context.get()), ssl.connection_free);
    if (!connection || ssl.set_descriptor(connection.get(), fd.get()) != 1) return "OpenSSL cannot begin";
    if (!tls.server_name.empty()) ssl.set_host(connection.get(), tls.server_name.c_str());
    while (true) {
        ssl.clear_errors();
        const int rc = ssl.connect(connection.get());
        if (rc == 1) return {};
        const int error = ssl.get_error(connection.get(), rc);
        if (error == kWantRead || error == kWantWrite) {
            if (wait(fd.get(), error == kWantRead ? POLLIN : POLLOUT)) continue;
            return "the TLS handshake does not end in time";
        }
        if (const long verify = ssl.verify_result(connection.get()); verify != 0) {
            return "the certificate of the server is not accepted: " + std::string(ssl.verify_text(verify)) +
                   "; the authorities are those in " + tls.ca_file +
                   (tls.server_name.empty() ? "" : ", and it must be for " + tls.server_name);
        }
        return "the TLS handshake fails: " + reason();
    }
}

}  // namespace zkrecipes::internal
