#pragma once

#include <memory>
#include <optional>
#include <string>

#include <zkrecipes/encryption.hpp>

#include "client/zk_log.hpp"

struct _zhandle;

namespace zkrecipes::internal {

struct ClientOptions;

bool client_has_tls() noexcept;
bool client_has_sasl() noexcept;
/// Throws Error unsupported if the C client that is linked lacks what the options need, and bad_option if they ask for
/// what no C client can do.
void check_client_for(const ClientOptions& options);

/// What the C client keeps a pointer to while it authenticates.
class SaslAnswers;
struct SaslAnswersDelete {
    void operator()(SaslAnswers* answers) const noexcept;
};
using SaslAnswersPointer = std::unique_ptr<SaslAnswers, SaslAnswersDelete>;
SaslAnswersPointer make_sasl_answers(const SaslOptions& options);

struct HandleCall {
    std::string hosts;
    void (*watcher)(_zhandle*, int, int, const char*, void*);
    int timeout_ms;
    void* context;
    int flags;
    ClientLogFunction log;
};
/// As zookeeper_init2. Null: errno says why. `sasl` must live as long as the handle.
_zhandle* init_handle(const HandleCall& call, const std::optional<TlsOptions>& tls, SaslAnswers* sasl);

/// As zoo_set_servers.
void set_servers_of(_zhandle* zh, const std::string& list);

/// The C client has given up because the servers refused the answers; it calls no watcher then.
bool sasl_has_failed(_zhandle* zh);

}  // namespace zkrecipes::internal
